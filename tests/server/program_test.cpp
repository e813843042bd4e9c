// `heddle serve`, run as a user runs it: what it says, what it takes, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "cli/process.h"
#include "server/test_server.h"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Program {
 public:
  explicit Program(std::vector<std::string> arguments = {}) : process_(command(arguments)) {
    std::string line;
    while (!line.ends_with('\n')) {
      const std::string more = process_.read_some();
      if (more.empty()) break;
      line += more;
    }
    EXPECT_THAT(line, testing::StartsWith("listening on http://127.0.0.1:"));
    const std::size_t url = line.find("http");
    if (url != std::string::npos) url_ = line.substr(url, line.size() - url - 1);
  }

  const std::string& url() const { return url_; }
  Process& process() { return process_; }
  Finished end(int signal) {
    process_.signal(signal);
    return process_.finish("", 100s);
  }

 private:
  static std::vector<std::string> command(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{heddle_path(), "serve", "--port", "0", "-t", "1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  Process process_;
  std::string url_;
};

void start_stream(RawClient& client) {
  Json body = completion_body("Once upon a time", 400);
  body["stream"] = true;
  body["ignore_eos"] = true;
  client.send(request_text("POST", "/v1/completions", body.dump()));
  EXPECT_TRUE(client.read_until("\"text\":"));
}

TEST(Serve, ServesAndEndsOnEitherSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Program program;
    const RawResponse response = request(program.url(), "POST", "/v1/chat/completions",
                                         chat_body("Tell me of a fox.").dump());
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(Json::parse(request(program.url(), "GET", "/v1/models").body)["data"][0]["id"],
              "fable-1m");
    const Finished finished = program.end(signal);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
  }
}

TEST(Serve, DrainsBeforeItEnds) {
  Program program;
  RawClient client(program.url());
  start_stream(client);
  const Finished finished = program.end(SIGTERM);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_TRUE(client.read_until("[DONE]")) << "the reply was whole before the end";
  EXPECT_THAT(finished.err, testing::Not(HasSubstr("cut off")));
}

TEST(Serve, EndsInTimeThoughRepliesDoNot) {
  Program program({"--drain", "0"});
  RawClient client(program.url());
  start_stream(client);
  RawClient silent(program.url()), slow(program.url());
  slow.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  const Finished finished = program.end(SIGTERM);
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("cut off"));
}

TEST(Serve, ASecondSignalEndsItAtOnce) {
  Program program({"--drain", "1000000"});
  RawClient watcher(program.url());
  watcher.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  RawClient client(program.url());
  start_stream(client);
  program.process().signal(SIGTERM);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(program.end(SIGTERM).exit_code, 0);
}

TEST(Serve, SaysWhatIsWrong) {
  EXPECT_THAT(heddle_program({"serve", "/no/such/model.gguf"}).err,
              HasSubstr("/no/such/model.gguf"));
  EXPECT_THAT(heddle_program({"serve", "--chat-template", "/no/such/file"}).err,
              HasSubstr("/no/such/file"));
  EXPECT_EQ(heddle_program({"serve", "--port", "65536"}).exit_code, 2);
  EXPECT_EQ(heddle_program({"serve", "--timeout", "0"}).exit_code, 2);
  Program program;
  const std::string port = program.url().substr(program.url().rfind(':') + 1);
  const Finished second = heddle_program({"serve", "--port", port});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr("port " + port));
}

TEST(Serve, TakesItsLimitsFromTheCommandLine) {
  const std::string keys = testing::TempDir() + "heddle-keys-" + std::to_string(getpid());
  std::ofstream(keys) << "one\r\n\ntwo\n";
  Program program(
      {"--alias", "m", "--api-key-file", keys, "--max-body", "1k", "-c", "64", "-np", "2"});
  const std::string key = "Authorization: Bearer two\r\n";
  EXPECT_EQ(request(program.url(), "GET", "/v1/models").status, 401);
  const Json model = Json::parse(request(program.url(), "GET", "/v1/models/m", "", key).body);
  EXPECT_EQ(model["meta"]["n_ctx"], 64);
  EXPECT_EQ(request(program.url(), "POST", "/v1/completions", std::string(1025, ' '), key).status,
            413);
  EXPECT_EQ(request(program.url(), "POST", "/v1/completions", std::string(1024, ' '), key).status,
            400);
  std::remove(keys.c_str());
  EXPECT_EQ(program.end(SIGTERM).exit_code, 0);
}

}  // namespace
}  // namespace heddle::test
