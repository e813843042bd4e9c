// /trace/live: what runs, as it runs, as server-sent events (docs/trace.md has the lines).
#include <set>

#include "exec/trace.h"
#include "heddle/observe.h"
#include "server/app.h"

namespace heddle::server {

namespace {

/// Each sees every value, which takes time from everybody.
constexpr int kMostWatchers = 4;
/// A watcher that has so much left to read misses the runs that begin then.
constexpr std::size_t kMostUnsent = std::size_t{1} << 20;

class LiveTrace final : public Observer {
 public:
  explicit LiveTrace(std::shared_ptr<Reply> reply)
      : reply_(std::move(reply)),
        lines_([this](const std::string& line) { reply_->write("data: " + line + "\n\n"); }) {}

  void run_began(const ObservedRun& run) override {
    if (reply_->unsent() > kMostUnsent)
      missed_.insert(run.id);
    else
      lines_.run_began(run);
  }
  bool wants(const ObservedRun& run, const ObservedNode& node, std::uint32_t output) override {
    return !missed_.contains(run.id) && lines_.wants(run, node, output);
  }
  void node_ran(const ObservedRun& run, const ObservedRecord& record) override {
    if (!missed_.contains(run.id)) lines_.node_ran(run, record);
  }
  void run_ended(const ObservedRun& run, ObservedTime end, const Error* error) override {
    if (missed_.erase(run.id) == 0) lines_.run_ended(run, end, error);
  }

 private:
  std::shared_ptr<Reply> reply_;
  TraceLines lines_;
  std::set<std::uint64_t> missed_;
};

/// Ends when the client goes, or the server drains.
class Watch {
 public:
  Watch(App& app, const std::shared_ptr<Reply>& reply)
      : app_(app), scope_(std::make_shared<LiveTrace>(reply), ObserveScope::Of::process) {
    ++app_.watchers;
  }
  ~Watch() { --app_.watchers; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  App& app_;
  ObserveScope scope_;
};

}  // namespace

void trace_live(App& app, Call call) {
  if (app.watchers >= kMostWatchers) {
    ApiError error(429, fmt::format("{} others watch already", kMostWatchers));
    error.retry_after = 10;
    throw error;
  }
  call.reply->begin({.content_type = "text/event-stream",
                     .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
                     .body = ": heddle\n\n"});
  call.reply->on_gone([watch = std::make_shared<Watch>(app, call.reply)] {});
  app.endless.add(call.reply);
}

}  // namespace heddle::server
