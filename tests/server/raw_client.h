// An HTTP client that does what it is told, sound or not, byte by byte.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::test {

struct RawResponse {
  int status = 0;                              // 0: the connection ended before there was one
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool whole = false;                          // nothing of it is missing
};

class RawClient {
 public:
  /// Connects to "http://127.0.0.1:8080".
  explicit RawClient(const std::string& url);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False if the server has closed the connection.
  bool send(std::string_view data);
  void half_close();  // the sending side
  void close();
  void reset();  // as a process that dies with unread input
  /// A small window, so that what the server sends soon waits.
  void shrink_receive_buffer();

  /// What is there, once something is; empty at the end, or if nothing comes in time.
  std::string read_some(std::chrono::milliseconds limit = std::chrono::seconds(20));
  /// Reads until `text` has come; false at the end of the connection, or of the time.
  bool read_until(std::string_view text,
                  std::chrono::milliseconds limit = std::chrono::seconds(20));
  /// The next response. `head_only`: to a HEAD request.
  RawResponse read_response(std::chrono::milliseconds limit = std::chrono::seconds(20),
                            bool head_only = false);
  /// Whether the server closes the connection in time. Throws away what comes before.
  bool is_closed_within(std::chrono::milliseconds limit);

  const std::string& unread() const noexcept { return input_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);
  std::optional<std::string> take_line(std::chrono::steady_clock::time_point deadline);
  bool take_bytes(std::size_t count, std::string& into,
                  std::chrono::steady_clock::time_point deadline);
  void read_body(RawResponse& response, std::chrono::steady_clock::time_point deadline);

  int fd_ = -1;
  std::string input_;
  bool ended_ = false;
};

/// One request on a connection of its own.
RawResponse request(const std::string& url, const std::string& method, const std::string& path,
                    const std::string& body = "", const std::string& more_headers = "",
                    std::chrono::milliseconds limit = std::chrono::seconds(60));
std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body = "", const std::string& more_headers = "");

}  // namespace heddle::test
