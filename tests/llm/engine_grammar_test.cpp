// Replies under a grammar, beside others without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heddle/grammar.h"
#include "llm/engine_support.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using llm::Engine;
using llm::EngineOptions;
using llm::Request;
using llm::StopReason;

EngineOptions options() {
  EngineOptions o;
  o.context.n_ctx = 256;
  o.context.threads = 2;
  o.n_parallel = 4;
  return o;
}

Request constrained(const llm::Model& model, std::shared_ptr<const Grammar> grammar) {
  Request request = greedily(model.tokenizer().encode("Once upon a time"), 120);
  request.grammar = std::move(grammar);
  return request;
}

/// What masking all logits at each step gives; the engine looks first whether it must.
std::string masked_reply(const std::shared_ptr<const llm::Model>& model, const Request& request) {
  llm::ContextOptions o;
  o.n_ctx = 256;
  llm::Context context(model, o);
  GrammarMatcher matcher(request.grammar, std::make_shared<VocabularyIndex>(model->tokenizer()));
  llm::Sampler sampler(request.sampler);
  const llm::SequenceId sequence = context.create();
  std::vector<float> logits = context.step(sequence, request.prompt);
  std::vector<TokenId> reply;
  while (static_cast<std::int64_t>(reply.size()) < request.max_tokens && !matcher.must_end()) {
    matcher.mask(logits);
    const TokenId token = sampler.sample(logits);
    if (model->tokenizer().is_end(token)) break;
    matcher.accept(token);
    sampler.accept(token);
    reply.push_back(token);
    logits = context.step(sequence, {&token, 1});
  }
  std::string text;
  for (const TokenId token : reply) text += model->tokenizer().token_bytes(token);
  return text;
}

TEST(EngineGrammar, OnlyWhatMatchesComesOut) {
  const std::shared_ptr<const llm::Model> model = llm::Model::bundled();
  Engine engine(model, options());
  const auto letters = Grammar::from_gbnf("root ::= [a-c]{3} \" \" (\"yes\" | \"no\")");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Request request = constrained(*model, letters);
    if (seed > 0) request.sampler = {.temperature = 1.5f, .top_k = 0, .seed = seed};
    const Heard heard = hear(*engine.submit(request));
    ASSERT_TRUE(heard.finish) << heard.error->what();
    EXPECT_EQ(heard.finish->reason, StopReason::end_token);
    EXPECT_THAT(heard.text, testing::MatchesRegex("[a-c][a-c][a-c] (yes|no)"));
  }
}

TEST(EngineGrammar, GreedyRepliesAreThoseOfMaskedLogits) {
  const std::shared_ptr<const llm::Model> model = llm::Model::bundled();
  Engine engine(model, options());
  for (const char* text : {"root ::= [a-z ]{20,30} \".\"",
                           "root ::= (\" the\" | \" a\" | \" fox\")+ \"!\"", "root ::= [^e]{40}"}) {
    const Request request = constrained(*model, Grammar::from_gbnf(text));
    const Heard heard = hear(*engine.submit(request));
    ASSERT_TRUE(heard.finish) << heard.error->what();
    EXPECT_EQ(heard.text, masked_reply(model, request)) << text;
  }
}

TEST(EngineGrammar, JsonIsJsonBesideTextsThatAreNot) {
  HEDDLE_SHARED_FILE(path, "models/stories260K.gguf");
  for (const std::shared_ptr<const llm::Model>& model :
       {std::shared_ptr<const llm::Model>(llm::Model::bundled()),
        std::shared_ptr<const llm::Model>(llm::Model::open(path))}) {
    const auto schema = Grammar::from_json_schema(
        R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"]})");
    Engine engine(model, options());
    Alone alone(model, 256);
    Request request = constrained(*model, schema);
    const Request plain = greedily(request.prompt, 30);
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < 6; ++i) {
      request.sampler = {.temperature = 1, .seed = i};
      requests.insert(requests.end(), {request, plain});
    }
    const auto tickets = engine.submit(requests);
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const Heard heard = hear(*tickets[i]);
      if (i % 2 == 1) {
        expect_as_alone(heard, plain, alone);
        continue;
      }
      ASSERT_TRUE(heard.finish) << heard.error->what();
      ASSERT_EQ(heard.finish->reason, StopReason::end_token) << heard.text;
      const auto parsed = nlohmann::json::parse(heard.text, nullptr, false);
      ASSERT_TRUE(parsed.is_object()) << heard.text;
      EXPECT_TRUE(parsed.at("name").is_string());
      EXPECT_LE(parsed.at("age").get<int>(), 150);
    }
    expect_at_rest(engine);
  }
}

TEST(EngineGrammar, WhatCannotGoOnFailsAlone) {
  const std::shared_ptr<const llm::Model> model = llm::Model::bundled();
  Engine engine(model, options());
  Alone alone(model, 256);
  Request impossible = constrained(*model, Grammar::from_gbnf("root ::= \"yes\" | \"no\""));
  for (TokenId id = 0; id < model->config().n_vocab; ++id) impossible.sampler.logit_bias[id] = -100;
  const Request plain = greedily(impossible.prompt, 30);
  const auto tickets = engine.submit({plain, impossible, plain});
  EXPECT_EQ(hear(*tickets[1]).error->code(), ErrorCode::backend);
  expect_as_alone(hear(*tickets[0]), plain, alone);
  expect_as_alone(hear(*tickets[2]), plain, alone);
  EXPECT_EQ(engine.stats().faults, 0u);
  EXPECT_EQ(engine.stats().failed, 1u);
  expect_at_rest(engine);
}

}  // namespace
}  // namespace heddle::test
