// Rule 17 for engines: whatever requests come together, leave and share, each gets what it gets
// alone. MIX_ROUNDS engines, with random options and requests.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "llm/engine_support.h"
#include "support/environment.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using llm::Engine;
using llm::EngineOptions;
using llm::Request;

constexpr std::int64_t kContext = 192;

class Mix {
 public:
  Mix(std::shared_ptr<const llm::Model> model, unsigned seed)
      : model_(std::move(model)),
        alone_{Alone(model_, kContext, false), Alone(model_, kContext, true)},
        random_(seed) {
    for (int i = 0; i < 6; ++i) texts_.push_back(random_text());
    for (int i = 0; i < 20; ++i) requests_.push_back(random_request());
    for (int i = 0; i < 4; ++i) embeddings_.push_back(random_embedding());
  }

  void round() {
    const EngineOptions options = random_options();
    SCOPED_TRACE("parallel " + std::to_string(options.n_parallel) + ", kv " +
                 std::to_string(options.n_kv) + ", chunk " + std::to_string(options.context.chunk) +
                 ", cached " + std::to_string(options.max_cached) +
                 (options.context.lazy ? ", lazy" : ""));
    const bool lazy = options.context.lazy;
    Alone& alone = alone_[lazy];
    Engine engine(model_, options);
    struct Asked {
      std::shared_ptr<llm::Ticket> ticket;
      const Request* request = nullptr;
      const Embedding* embedding = nullptr;
      bool cancelled = false;
    };
    std::vector<Asked> asked;
    for (int i = 0; i < 24; ++i) {
      Asked one;
      if (below(6) == 0) {
        one.embedding = &embeddings_[below(embeddings_.size())];
        one.ticket = engine.submit(one.embedding->request);
      } else {
        one.request = &requests_[below(requests_.size())];
        one.ticket = engine.submit(*one.request);
      }
      asked.push_back(std::move(one));
      if (below(5) == 0) {
        Asked& some = asked[below(asked.size())];
        some.cancelled = true;
        some.ticket->cancel();
      }
      if (below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(below(4000)));
    }
    for (const Asked& one : asked) {
      const Heard heard = hear(*one.ticket);
      ASSERT_FALSE(heard.error) << heard.error->what();
      if (heard.finish->reason == llm::StopReason::cancelled) {
        EXPECT_TRUE(one.cancelled);
        if (one.request) {
          EXPECT_TRUE(alone.reply(*one.request).text.starts_with(heard.text));
        }
      } else if (one.request) {
        expect_as_alone(heard, *one.request, alone);
      } else {
        EXPECT_EQ(heard.finish->embedding, one.embedding->alone[lazy]);
      }
    }
    expect_at_rest(engine);
    cached_tokens += engine.stats().cached_tokens;
  }

  std::uint64_t cached_tokens = 0;

 private:
  struct Embedding {
    llm::EmbeddingRequest request;
    std::vector<float> alone[2];
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::vector<TokenId> random_text() {
    std::vector<TokenId> text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(kContext); ++i)
      text.push_back(
          static_cast<TokenId>(below(static_cast<std::size_t>(model_->config().n_vocab))));
    return text;
  }

  /// The beginning of one of few texts, and perhaps some of another.
  std::vector<TokenId> random_prompt() {
    const std::vector<TokenId>& first = texts_[below(texts_.size())];
    std::vector<TokenId> prompt(
        first.begin(), first.begin() + 1 + static_cast<std::ptrdiff_t>(below(below(2) ? 20 : 120)));
    if (below(2)) {
      const std::vector<TokenId>& second = texts_[below(texts_.size())];
      prompt.insert(prompt.end(), second.begin(),
                    second.begin() + static_cast<std::ptrdiff_t>(below(60)));
    }
    return prompt;
  }

  Request random_request() {
    Request request = greedily(random_prompt(), static_cast<std::int64_t>(below(120)));
    if (below(8) == 0) request.max_tokens = -1;
    if (below(3) == 0)
      request.sampler = {.temperature = 0.9f, .seed = static_cast<std::uint64_t>(below(100))};
    if (below(4) == 0) request.sampler.presence_penalty = 1;
    if (below(4) == 0) request.stop = {"e"};
    return request;
  }

  Embedding random_embedding() {
    Embedding one;
    one.request.tokens = random_prompt();
    one.request.pooling = below(2) ? llm::Pooling::mean : llm::Pooling::last;
    for (const bool lazy : {false, true}) {
      EngineOptions options;
      options.context.n_ctx = kContext;
      options.context.threads = 1;
      options.context.lazy = lazy;
      Engine engine(model_, options);
      one.alone[lazy] = hear(*engine.submit(one.request)).finish->embedding;
    }
    return one;
  }

  EngineOptions random_options() {
    EngineOptions options;
    options.context.n_ctx = kContext;
    options.context.threads = 1 + static_cast<int>(below(2));
    options.context.chunk = 1 + static_cast<std::int64_t>(below(100));
    options.context.lazy = below(6) == 0;
    options.n_parallel = 1 + static_cast<std::int64_t>(below(9));
    options.n_kv =
        below(4) == 0 ? 0 : kContext + static_cast<std::int64_t>(below(2) * below(4)) * 32;
    options.max_cached = static_cast<std::int64_t>(below(8));
    options.step_seconds = below(2) ? 1e-6 : 0.1;
    return options;
  }

  std::shared_ptr<const llm::Model> model_;
  Alone alone_[2];  // with plans, and lazily: their last bits differ
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<Request> requests_;
  std::vector<Embedding> embeddings_;
};

void run_rounds(std::shared_ptr<const llm::Model> model) {
  const auto seed = static_cast<unsigned>(number_from("MIX_SEED", 1));
  Mix mix(std::move(model), seed);
  for (int round = 0; round < number_from("MIX_ROUNDS", 12); ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    mix.round();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(mix.cached_tokens, 0u);
}

TEST(EngineMix, EachRequestOfTheBundledModelGetsWhatItGetsAlone) {
  run_rounds(llm::Model::bundled());
}

TEST(EngineMix, EachRequestOfStoriesGetsWhatItGetsAlone) {
  HEDDLE_SHARED_FILE(path, "models/stories260K.gguf");
  run_rounds(llm::Model::open(path));
}

}  // namespace
}  // namespace heddle::test
