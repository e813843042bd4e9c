// Generation with the bundled model: text, stops, limits and cancellation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "heddle/error.h"
#include "heddle/llm.h"
#include "llm/endless_model.h"
#include "text/utf8.h"

namespace heddle::llm {
namespace {

constexpr const char* kPrompt = "Once upon a time";

/// What the bundled model says after kPrompt; a separate float64 program wrote it.
std::string greedy_continuation() {
  std::ifstream file(HEDDLE_SOURCE_DIR "/models/fable-1m.greedy.txt");
  std::stringstream text;
  text << file.rdbuf();
  std::string story = text.str().substr(std::string(kPrompt).size());
  while (story.ends_with('\n')) story.pop_back();
  return story;
}

std::shared_ptr<const Model> model() {
  static const std::shared_ptr<const Model> shared = Model::bundled();
  return shared;
}

std::shared_ptr<const Model> endless() {
  const std::filesystem::path path = test::endless_model();
  const std::shared_ptr<const Model> opened = Model::open(path);
  std::filesystem::remove(path);  // it stays mapped
  return opened;
}

GenerateOptions greedy() {
  GenerateOptions options;
  options.sampler.temperature = 0;
  return options;
}

struct Told {
  GenerateResult result;
  std::vector<std::string> pieces;
  std::string text;
};

Told tell(Context& context, const GenerateOptions& options, const std::string& prompt = kPrompt) {
  Told told;
  const SequenceId sequence = context.create();
  told.result = generate(context, sequence, context.model().tokenizer().encode(prompt), options,
                         [&](std::string_view text) {
                           told.pieces.emplace_back(text);
                           told.text += text;
                           return true;
                         });
  context.release(sequence);
  while (told.result.reason == StopReason::end_token && told.text.ends_with('\n'))
    told.text.pop_back();
  return told;
}

TEST(Generate, TellsTheReferenceStory) {
  Context context(model(), {});
  const Told told = tell(context, greedy());
  EXPECT_EQ(told.text, greedy_continuation());
  EXPECT_EQ(told.result.reason, StopReason::end_token);
  EXPECT_EQ(told.result.prompt_tokens,
            static_cast<std::int64_t>(model()->tokenizer().encode(kPrompt).size()));
  EXPECT_GT(told.result.prompt_seconds, 0);
  EXPECT_GT(told.result.generate_seconds, 0);
  EXPECT_GE(told.pieces.size(), static_cast<std::size_t>(told.result.generated_tokens));
  EXPECT_LE(told.pieces.size(), static_cast<std::size_t>(told.result.generated_tokens) + 1);
}

TEST(Generate, StopsAtATextAcrossTokens) {
  Context context(model(), {});
  const std::string story = greedy_continuation();
  GenerateOptions options = greedy();
  const std::size_t end = story.find(". ") - 2;
  options.stop = {"no such text", story.substr(end, 9)};  // begins and ends inside words
  ASSERT_EQ(story.find(options.stop[1]), end);
  const Told told = tell(context, options);
  EXPECT_EQ(told.text, story.substr(0, end));
  EXPECT_EQ(told.result.reason, StopReason::stop_text);
}

TEST(Generate, WhatMightHaveBeenAStopIsGivenOutInTheEnd) {
  Context context(model(), {});
  GenerateOptions options = greedy();
  options.stop = {greedy_continuation() + " And so on, and on."};
  const Told told = tell(context, options);
  EXPECT_EQ(told.text, greedy_continuation());
  EXPECT_EQ(told.result.reason, StopReason::end_token);
}

TEST(Generate, MaxTokens) {
  Context context(model(), {});
  const std::string story = greedy_continuation();
  for (const std::int64_t limit : {0, 1, 7}) {
    GenerateOptions options = greedy();
    options.max_tokens = limit;
    const Told told = tell(context, options);
    EXPECT_EQ(told.result.reason, StopReason::max_tokens);
    EXPECT_EQ(told.result.generated_tokens, limit);
    EXPECT_EQ(told.text, story.substr(0, told.text.size()));
    EXPECT_EQ(told.text.empty(), limit == 0);
  }
}

TEST(Generate, AFullContextEndsIt) {
  Context context(model(), {.n_ctx = 32});
  const Told told = tell(context, greedy());
  EXPECT_EQ(told.result.reason, StopReason::context_full);
  // The last token needs no position: nothing comes after it.
  EXPECT_EQ(told.result.prompt_tokens + told.result.generated_tokens, 33);
  EXPECT_EQ(told.text, greedy_continuation().substr(0, told.text.size()));
}

TEST(Generate, APromptBeyondTheContextIsRefused) {
  Context context(model(), {.n_ctx = 32});
  const SequenceId sequence = context.create();
  const std::vector<TokenId> prompt(33, 5);
  const auto never = [](std::string_view) { return true; };
  EXPECT_THROW(generate(context, sequence, prompt, greedy(), never), Error);
  EXPECT_EQ(context.length(sequence), 0);
}

TEST(Generate, OnTextCancels) {
  Context context(model(), {});
  const SequenceId sequence = context.create();
  int calls = 0;
  const auto result = generate(context, sequence, model()->tokenizer().encode(kPrompt), greedy(),
                               [&](std::string_view) { return ++calls < 5; });
  EXPECT_EQ(result.reason, StopReason::cancelled);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(result.generated_tokens, 5);
}

TEST(Generate, ProgressCancelsThePrompt) {
  Context context(model(), {.chunk = 4});
  const SequenceId sequence = context.create();
  GenerateOptions options = greedy();
  std::vector<std::int64_t> seen;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, 20);
    seen.push_back(done);
    return done < 8;
  };
  bool spoke = false;
  const auto result = generate(context, sequence, std::vector<TokenId>(20, 5), options,
                               [&](std::string_view) { return spoke = true; });
  EXPECT_EQ(result.reason, StopReason::cancelled);
  EXPECT_THAT(seen, testing::ElementsAre(0, 4, 8));
  EXPECT_FALSE(spoke);
  EXPECT_EQ(context.length(sequence), 0);
}

TEST(Generate, AnEmptyPromptIsTheBeginningToken) {
  Context context(model(), {});
  ASSERT_TRUE(model()->tokenizer().bos());
  GenerateOptions options = greedy();
  options.max_tokens = 5;
  const Told empty = tell(context, options, "");
  EXPECT_EQ(empty.result.prompt_tokens, 1);
  const SequenceId sequence = context.create();
  std::string text;
  generate(context, sequence, std::vector<TokenId>{*model()->tokenizer().bos()}, options,
           [&](std::string_view piece) {
             text += piece;
             return true;
           });
  EXPECT_EQ(empty.text, text);
}

TEST(Generate, AnEmptyPromptAfterOthersIsRefused) {
  Context context(model(), {});
  const SequenceId sequence = context.create();
  context.step(sequence, std::vector<TokenId>{1, 2, 3});
  const auto never = [](std::string_view) { return true; };
  EXPECT_THROW(generate(context, sequence, {}, greedy(), never), Error);
}

TEST(Generate, AnEmptyPromptWithoutABeginningTokenIsRefused) {
  Context context(endless(), {.n_ctx = 64});
  const auto never = [](std::string_view) { return true; };
  try {
    generate(context, context.create(), {}, greedy(), never);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("the prompt is empty"));
  }
}

TEST(Generate, PiecesAreWholeCharacters) {
  Context context(endless(), {.n_ctx = 512});
  GenerateOptions options;
  options.sampler = {.temperature = 50, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 3};
  const Told told = tell(context, options);
  EXPECT_EQ(told.result.reason, StopReason::context_full);
  for (const std::string& piece : told.pieces) {
    for (std::size_t at = 0; at < piece.size();) {
      const text::Utf8Unit unit = text::utf8_unit(piece, at);
      ASSERT_EQ(unit.status, text::Utf8Status::valid);
      at += unit.length;
    }
  }
  // Half of the tokens are bytes, so this would be no test if none of them were broken.
  EXPECT_THAT(told.text, testing::HasSubstr(std::string(text::kReplacementCharacter)));
}

TEST(Generate, SeedsDecide) {
  Context context(model(), {});
  const auto told = [&](std::uint64_t seed) {
    GenerateOptions options;
    options.sampler.temperature = 1.5f;
    options.sampler.seed = seed;
    options.max_tokens = 40;
    return tell(context, options).text;
  };
  EXPECT_EQ(told(1), told(1));
  EXPECT_NE(told(1), told(2));
}

TEST(Generate, PenaltyCountsThePrompt) {
  Context context(model(), {});
  GenerateOptions options = greedy();
  options.max_tokens = 1;
  const std::string likeliest = tell(context, options).text;
  const std::vector<TokenId> next = model()->tokenizer().encode(likeliest);
  ASSERT_EQ(next.size(), 1u);
  // The same token a step earlier in the prompt, and a penalty that nothing survives.
  options.sampler.repeat_penalty = 1e6f;
  const std::string penalised = tell(context, options, std::string(likeliest) + kPrompt).text;
  EXPECT_NE(penalised, likeliest);
}

TEST(Generate, GrammarsHoldTheText) {
  Context context(model(), {});
  GenerateOptions options = greedy();
  options.grammar = Grammar::from_gbnf("root ::= \" \" [a-z]{3} (\", \" [a-z]{3}){2} \"!\"");
  for (const float temperature : {0.0f, 1.5f}) {
    options.sampler.temperature = temperature;
    const Told told = tell(context, options);
    EXPECT_THAT(told.text, testing::MatchesRegex(" [a-z]{3}, [a-z]{3}, [a-z]{3}!"));
    EXPECT_EQ(told.result.reason, StopReason::end_token);
  }
  options.grammar = Grammar::from_gbnf("root ::= .* \"x\"");  // ends where it may, with a token
  options.max_tokens = 5;
  EXPECT_EQ(tell(context, options).result.generated_tokens, 5);
}

TEST(Generate, RefusesNonsense) {
  Context context(model(), {});
  const auto never = [](std::string_view) { return true; };
  GenerateOptions options = greedy();
  options.max_tokens = -2;
  EXPECT_THROW(generate(context, 0, std::vector<TokenId>{1}, options, never), Error);
  options = greedy();
  options.stop = {""};
  EXPECT_THROW(generate(context, 0, std::vector<TokenId>{1}, options, never), Error);
}

}  // namespace
}  // namespace heddle::llm
