#include "server/jobs.h"

#include <utility>

#include "server/api_error.h"

namespace heddle::server {

Jobs::Jobs(std::shared_ptr<Reply> reply, std::size_t count, std::size_t most_at_once)
    : reply_(std::move(reply)), tickets_(count), most_at_once_(most_at_once) {}

Jobs::~Jobs() = default;

void Jobs::start() {
  reply_->post([self = shared_from_this()] {
    self->submit_more();
    if (self->over_) return;
    self->reply_->on_gone([weak = self->weak_from_this()] {
      if (const auto jobs = weak.lock()) jobs->give_up();
    });
  });
}

void Jobs::submit_more() {
  try {
    while (!over_ && next_ < tickets_.size() && running_ < most_at_once_) {
      const std::size_t job = next_;
      tickets_[job] = submit(job);
      ++next_;
      ++running_;
      tickets_[job]->notify([self = shared_from_this(), job] {
        self->reply_->post([self, job] { self->take(job); });
      });
    }
  } catch (const llm::QueueFull&) {
    if (running_ == 0) fail(current_api_error());  // else one of ours will end, and make room
  } catch (...) {
    fail(current_api_error());
  }
}

void Jobs::take(std::size_t job) {
  if (over_ || !tickets_[job]) return;
  const std::optional<llm::Event> event = tickets_[job]->next(std::chrono::milliseconds(0));
  if (!event) return;
  if (event->error) {
    try {
      throw Error(*event->error);
    } catch (...) {
      return fail(current_api_error());
    }
  }
  try {
    on_event(job, *event);
  } catch (...) {
    return fail(current_api_error());
  }
  if (over_ || !event->finish) return;
  tickets_[job].reset();
  --running_;
  submit_more();
  if (over_ || running_ > 0) return;
  over_ = true;
  on_end();
}

void Jobs::cancel(std::size_t job) {
  if (tickets_[job]) tickets_[job]->cancel();
}

void Jobs::fail(const ApiError& error) {
  give_up();
  on_error(error);
}

void Jobs::give_up() {
  over_ = true;
  for (auto& ticket : tickets_) {
    if (ticket) ticket->cancel();
    ticket.reset();
  }
}

}  // namespace heddle::server
