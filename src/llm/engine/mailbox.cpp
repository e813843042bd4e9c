#include "llm/engine/mailbox.h"

#include <iterator>
#include <utility>

namespace heddle::llm {

namespace {

void join(Event& first, Event&& second) {
  first.text += second.text;
  first.tokens.insert(first.tokens.end(), std::make_move_iterator(second.tokens.begin()),
                      std::make_move_iterator(second.tokens.end()));
  first.finish = std::move(second.finish);
  first.error = std::move(second.error);
}

}  // namespace

// ---- Doorbell

void Doorbell::ring() noexcept {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  rang_.notify_one();
}

void Doorbell::wait() {
  std::unique_lock lock(mutex_);
  rang_.wait(lock, [this] { return rung_; });
  rung_ = false;
}

// ---- Notifier

Notifier::Notifier()
    : queue_(std::make_shared<Queue>()), thread_([queue = queue_] { queue->run(); }) {}

Notifier::~Notifier() {
  queue_->close();
  if (std::this_thread::get_id() != thread_.get_id() && queue_->has_ended())
    thread_.join();
  else
    thread_.detach();  // the queue is the thread's own then
}

void Notifier::Queue::add(std::shared_ptr<Mailbox> mailbox) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(mailbox));
  }
  changed_.notify_all();
}

void Notifier::Queue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    std::shared_ptr<Mailbox> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next->call_ready();
    next = nullptr;  // whose end may call anything
    lock.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

void Notifier::Queue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool Notifier::Queue::has_ended() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; });
}

// ---- Mailbox

Mailbox::Mailbox(std::shared_ptr<Doorbell> doorbell, std::shared_ptr<Notifier::Queue> notices)
    : doorbell_(std::move(doorbell)), notices_(std::move(notices)) {}

void Mailbox::put(Event event) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    if (has_last_) return;
    has_last_ = event.finish || event.error;
    is_news = !waiting_ && ready_;
    if (waiting_)
      join(*waiting_, std::move(event));
    else
      waiting_ = std::move(event);
  }
  came_.notify_all();
  if (is_news) notices_->add(shared_from_this());
}

std::optional<Event> Mailbox::take(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, timeout, [this] { return waiting_ || ended_; });
  if (!waiting_) return std::nullopt;
  ended_ = has_last_;
  if (ended_) came_.notify_all();
  return std::exchange(waiting_, std::nullopt);
}

void Mailbox::cancel() noexcept {
  if (!cancelled_.exchange(true)) doorbell_->ring();
}

void Mailbox::set_ready(std::function<void()> ready) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    ready_ = ready ? std::make_shared<const std::function<void()>>(std::move(ready)) : nullptr;
    is_news = waiting_ && ready_;
  }
  if (is_news) notices_->add(shared_from_this());
}

void Mailbox::call_ready() {
  std::shared_ptr<const std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready = ready_;
  }
  try {
    if (ready) (*ready)();
  } catch (...) {
    cancel();
  }
}

// ---- Ticket

Ticket::Ticket(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}

Ticket::~Ticket() {
  mailbox_->set_ready(nullptr);
  mailbox_->cancel();
}

std::optional<Event> Ticket::next(std::chrono::milliseconds timeout) {
  return mailbox_->take(timeout);
}

bool Ticket::ended() const noexcept {
  return mailbox_->ended();
}

void Ticket::cancel() noexcept {
  mailbox_->cancel();
}

void Ticket::notify(std::function<void()> ready) {
  mailbox_->set_ready(std::move(ready));
}

}  // namespace heddle::llm
