#include "cli/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace heddle::test {

namespace {

struct Pipe {
  int read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {ends[0], ends[1]};
}

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

/// Appends what is there; closes `fd` at its end.
void drain(int& fd, std::string& text) {
  std::array<char, 4096> piece;
  const ssize_t count = read(fd, piece.data(), piece.size());
  if (count > 0)
    text.append(piece.data(), static_cast<std::size_t>(count));
  else
    close_end(fd);
}

/// Writes some of `input` from `done` on; closes `fd` when all is written, or nobody reads.
void feed(int& fd, const std::string& input, std::size_t& done) {
  const ssize_t count = ::write(fd, input.data() + done, input.size() - done);
  if (count > 0) done += static_cast<std::size_t>(count);
  if (count < 0 || done == input.size()) close_end(fd);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  ::signal(SIGPIPE, SIG_IGN);  // the child inherits that, and should not mind
  const Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    dup2(in.read, STDIN_FILENO);
    dup2(out.write, STDOUT_FILENO);
    dup2(err.write, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  for (const int fd : {in.read, out.write, err.write}) close(fd);
  in_ = in.write;
  out_ = out.read;
  err_ = err.read;
}

Process::~Process() {
  for (int* fd : {&in_, &out_, &err_}) close_end(*fd);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string Process::read_some() {
  std::string text;
  drain(out_, text);
  return text;
}

void Process::close_output() {
  close_end(out_);
}

void Process::signal(int number) {
  kill(pid_, number);
}

int Process::wait_status() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Process::write(const std::string& input) {
  ASSERT_EQ(::write(in_, input.data(), input.size()), static_cast<ssize_t>(input.size()));
}

Finished Process::finish(const std::string& input, std::chrono::seconds limit) {
  if (input.empty()) close_end(in_);
  return wait_for_end(input, limit);
}

Finished Process::finish_with_open_input() {
  const int open_end = std::exchange(in_, -1);
  Finished finished = wait_for_end("", std::chrono::seconds(100));
  close(open_end);
  return finished;
}

Finished Process::wait_for_end(const std::string& input, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  Finished finished;
  std::size_t written = 0;
  while (out_ >= 0 || err_ >= 0) {
    std::array<pollfd, 3> polled{{{in_, POLLOUT, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}}};
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "still running after " << limit.count() << " s; it said: " << finished.err;
      kill(pid_, SIGKILL);
      break;
    }
    if (poll(polled.data(), polled.size(), 100) <= 0) continue;
    if (polled[0].revents != 0) feed(in_, input, written);
    if (polled[1].revents != 0) drain(out_, finished.out);
    if (polled[2].revents != 0) drain(err_, finished.err);
  }
  finished.exit_code = wait_status();
  return finished;
}

std::string heddle_path() {
  const char* other = std::getenv("TESTED_PROGRAM");
  return other ? other : HEDDLE_PROGRAM;
}

Finished heddle_program(const std::vector<std::string>& arguments, const std::string& input) {
  std::vector<std::string> all{heddle_path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Process(all).finish(input);
}

}  // namespace heddle::test
