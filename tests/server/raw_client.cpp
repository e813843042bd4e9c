#include "server/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace heddle::test {

using Clock = std::chrono::steady_clock;

RawClient::RawClient(const std::string& url) {
  const std::size_t colon = url.rfind(':'), host = url.find("://") + 3;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1))));
  inet_pton(AF_INET, url.substr(host, colon - host).c_str(), &address.sin_addr);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "connect to " + url);
}

RawClient::~RawClient() {
  close();
}

bool RawClient::send(std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void RawClient::half_close() {
  shutdown(fd_, SHUT_WR);
}

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::reset() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void RawClient::shrink_receive_buffer() {
  const int bytes = 4096;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool RawClient::fill(Clock::time_point deadline) {
  if (ended_ || fd_ < 0) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd polled{fd_, POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) <= 0)
    return false;
  std::array<char, 65536> piece;
  const ssize_t count = recv(fd_, piece.data(), piece.size(), 0);
  if (count > 0) input_.append(piece.data(), static_cast<std::size_t>(count));
  ended_ = count <= 0;
  return count > 0;
}

std::string RawClient::read_some(std::chrono::milliseconds limit) {
  if (input_.empty()) fill(Clock::now() + limit);
  return std::exchange(input_, {});
}

bool RawClient::read_until(std::string_view text, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (input_.find(text) == std::string::npos) {
    if (!fill(deadline)) return false;
  }
  input_.erase(0, input_.find(text) + text.size());
  return true;
}

std::optional<std::string> RawClient::take_line(Clock::time_point deadline) {
  std::size_t end;
  while ((end = input_.find("\r\n")) == std::string::npos) {
    if (!fill(deadline)) return std::nullopt;
  }
  std::string line = input_.substr(0, end);
  input_.erase(0, end + 2);
  return line;
}

bool RawClient::take_bytes(std::size_t count, std::string& into, Clock::time_point deadline) {
  while (input_.size() < count) {
    if (!fill(deadline)) break;
  }
  const std::size_t there = std::min(count, input_.size());
  into += input_.substr(0, there);
  input_.erase(0, there);
  return there == count;
}

void RawClient::read_body(RawResponse& response, Clock::time_point deadline) {
  if (response.headers.contains("content-length")) {
    const std::size_t size = std::stoull(response.headers["content-length"]);
    response.whole = take_bytes(size, response.body, deadline);
  } else if (response.headers.contains("transfer-encoding")) {
    for (;;) {
      const auto line = take_line(deadline);
      if (!line) return;
      const std::size_t size = std::stoull(*line, nullptr, 16);
      if (!take_bytes(size, response.body, deadline) || !take_line(deadline)) return;
      if (size == 0) break;
    }
    response.whole = true;
  } else {
    while (fill(deadline)) {
    }
    response.body = std::exchange(input_, {});
    response.whole = ended_;
  }
}

RawResponse RawClient::read_response(std::chrono::milliseconds limit, bool head_only) {
  const auto deadline = Clock::now() + limit;
  RawResponse response;
  auto line = take_line(deadline);
  if (!line || line->size() < 12) return response;
  response.status = std::stoi(line->substr(9, 3));
  while ((line = take_line(deadline)) && !line->empty()) {
    const std::size_t colon = line->find(": ");
    std::string name = line->substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    response.headers[name] = colon == std::string::npos ? "" : line->substr(colon + 2);
  }
  if (response.status == 100) return read_response(limit, head_only);
  if (head_only)
    response.whole = line.has_value();
  else if (line)
    read_body(response, deadline);
  return response;
}

bool RawClient::is_closed_within(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!ended_ && Clock::now() < deadline) {
    fill(deadline);
    input_.clear();
  }
  return ended_;
}

std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const std::string& more_headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more_headers;
  if (!body.empty() || method == "POST")
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

RawResponse request(const std::string& url, const std::string& method, const std::string& path,
                    const std::string& body, const std::string& more_headers,
                    std::chrono::milliseconds limit) {
  RawClient client(url);
  client.send(request_text(method, path, body, more_headers));
  return client.read_response(limit, method == "HEAD");
}

}  // namespace heddle::test
