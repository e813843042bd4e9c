// Requests to the engine that make up one HTTP request, and what becomes of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "heddle/engine.h"
#include "server/http.h"

namespace heddle::server {

struct ApiError;

/// A number of jobs, of which some are with the engine at a time: a large batch leaves room for
/// others. Everything happens on the HTTP server's thread. The client's end cancels them all.
class Jobs : public std::enable_shared_from_this<Jobs> {
 public:
  Jobs(std::shared_ptr<Reply> reply, std::size_t count, std::size_t most_at_once);
  virtual ~Jobs();

  /// Submits the first ones; may be called from any thread.
  void start();

 protected:
  /// Hands a job to the engine; throws what that throws.
  virtual std::shared_ptr<llm::Ticket> submit(std::size_t job) = 0;
  virtual void on_event(std::size_t job, const llm::Event& event) = 0;
  /// After the last event of the last job.
  virtual void on_end() = 0;
  /// A job failed, or could not be submitted. The others have been cancelled.
  virtual void on_error(const ApiError& error) = 0;

  /// Lets go of a job whose further text is of no use.
  void cancel(std::size_t job);
  Reply& reply() const noexcept { return *reply_; }

 private:
  void submit_more();
  void take(std::size_t job);
  void fail(const ApiError& error);
  void give_up();

  std::shared_ptr<Reply> reply_;
  std::vector<std::shared_ptr<llm::Ticket>> tickets_;
  std::size_t most_at_once_, next_ = 0, running_ = 0;
  bool over_ = false;
};

}  // namespace heddle::server
