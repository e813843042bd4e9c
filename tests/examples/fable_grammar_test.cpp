// The fables, and what becomes of them as tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "corpus.h"
#include "grammar.h"
#include "heddle/chat_template.h"
#include "heddle/ops.h"

namespace fable {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

Fable fable_number(int number, bool on_request) {
  Random random = Random::of(1, 2, static_cast<std::uint64_t>(number));
  return on_request ? write_fable_on_request(random) : write_fable_unasked(random);
}

TEST(FableGrammar, ASeedGivesTheSameFableOnEveryMachine) {
  EXPECT_EQ(Random(1234567).next(), 6457827717110365317u);  // what SplitMix64 gives elsewhere
  EXPECT_EQ(fable_number(7, false).story, fable_number(7, false).story);
  EXPECT_EQ(fable_number(0, false).story,
            "Once upon a time, a patient otter named Pip lived near the big oak tree. Every "
            "morning Pip went to the big oak tree to play with her tiny lamp. One day it was very "
            "sunny, and Pip saw a turtle named Ben by the river.\n"
            "The tiny lamp was stuck high up in a tree near the river. Pip tried to get it, but it "
            "was too far. \"It is too hard,\" said Pip, who felt worried. \"Try one more time,\" "
            "said Ben. \"You can stand on my back.\" Pip tried one more time, and this time the "
            "tiny lamp came free.\n"
            "Pip and Ben were very calm. Keep trying, and you will find a way.");
  std::set<std::string> stories;
  for (int i = 0; i < 1000; ++i) stories.insert(fable_number(i, false).story);
  EXPECT_EQ(stories.size(), 1000u);
}

TEST(FableGrammar, FablesHaveThreeParagraphsAndNothingLeftToFill) {
  for (int i = 0; i < 2000; ++i) {
    const Fable fable = fable_number(i, i % 2 == 0);
    EXPECT_EQ(std::count(fable.story.begin(), fable.story.end(), '\n'), 2) << fable.story;
    EXPECT_EQ((fable.story + fable.request).find_first_of("<>{}|()"), std::string::npos)
        << fable.story;
    EXPECT_THAT(fable.story, MatchesRegex("(Once upon a time|There once was)(.|\n)*[.]"));
    EXPECT_EQ(fable.story.find("  "), std::string::npos) << fable.story;
  }
}

TEST(FableGrammar, WordsAgree) {
  static const std::regex wrong("\\b(a [aeiou]|an [^aeiou])");
  static const std::regex named("named ([A-Z][a-z]+)");
  for (int i = 0; i < 2000; ++i) {
    const std::string story = fable_number(i, false).story;
    EXPECT_FALSE(std::regex_search(story, wrong)) << story;
    std::set<std::string> names;
    for (std::sregex_iterator it(story.begin(), story.end(), named), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
    EXPECT_EQ(names.size(), 2u) << story;  // two animals, of different names
    const bool he = std::regex_search(story, std::regex("\\b(he|him|his)\\b"));
    const bool she = std::regex_search(story, std::regex("\\b(she|her)\\b"));
    EXPECT_FALSE(he && she) << story;
  }
}

TEST(FableGrammar, StoriesHaveWhatWasAskedFor) {
  static const std::regex animal("(?:about|with) an? ([a-z]+)(?: in it| and|[.])");
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    const Fable fable = fable_number(i, true);
    std::smatch match;
    if (!std::regex_search(fable.request, match, animal)) continue;
    EXPECT_THAT(fable.story, HasSubstr(match[1].str() + " named")) << fable.request;
    ++found;
  }
  EXPECT_GT(found, 200);
}

TEST(FableGrammar, NatsAreThoseOfTheChoices) {
  // The first paragraph's opening takes one of three forms; the nats of what follows are the same
  // on average, and stories are all different: so nats are more than the log of their number.
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    const double nats = fable_number(i, false).nats;
    EXPECT_GT(nats, 20);
    EXPECT_LT(nats, 50);
    sum += nats;
  }
  EXPECT_GT(sum / 2000, 28);
  EXPECT_LT(sum / 2000, 40);
  // An animal that was asked for is no choice of the story's.
  double asked = 0;
  for (int i = 0; i < 2000; ++i) asked += fable_number(i, true).nats;
  EXPECT_LT(asked, sum - 2000);
}

TEST(FableCorpus, RowsAreFullAndDecodeToFables) {
  constexpr std::size_t kRows = 32, kLength = 100;
  const Corpus corpus(3, 300, 500);
  const heddle::Array rows = corpus.rows(Purpose::training, 0, kRows, kLength);
  ASSERT_EQ(rows.shape(), (heddle::Shape{kRows, kLength}));
  const heddle::Tokenizer tokenizer(corpus.metadata());
  const std::vector<std::int32_t> ids = rows.to_vector<std::int32_t>();
  std::size_t conversations = 0, following = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::span<const std::int32_t> of_row(ids.data() + row * kLength, kLength);
    const std::string text = tokenizer.decode(of_row, true);
    EXPECT_THAT(text, MatchesRegex("((<.endoftext.>)?(Once upon|There once)|<.im_start.>user\n)"
                                   "(.|\n)*"));
    conversations += text.starts_with(kTurnBegin);
    following += text.starts_with(kEndOfText);
  }
  EXPECT_GT(conversations, 0u);
  EXPECT_GT(following, 0u);
  EXPECT_LT(conversations + following, kRows);
}

TEST(FableCorpus, RowsDependOnSeedPurposeAndNumberOnly) {
  const Corpus corpus(3, 300, 500);
  const auto row = [](const Corpus& of, Purpose purpose, std::int64_t number) {
    return of.rows(purpose, number, 1, 100).to_vector<std::int32_t>();
  };
  const auto both = corpus.rows(Purpose::training, 4, 2, 100).to_vector<std::int32_t>();
  const auto second = row(corpus, Purpose::training, 5);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), both.begin() + 100));
  EXPECT_NE(row(corpus, Purpose::held_out, 5), second);
  EXPECT_NE(row(Corpus(4, 300, 500), Purpose::training, 5), second);
}

TEST(FableCorpus, TheChatTemplateMakesWhatTrainingShowed) {
  const Corpus corpus(3, 100, 500);
  const heddle::ChatTemplate chat(corpus.metadata().get_string("tokenizer.chat_template"));
  const auto pieces =
      chat.render({.context = R"({"messages": [{"role": "user", "content": "Tell me a story."}],
                      "add_generation_prompt": true})"});
  EXPECT_EQ(heddle::joined(pieces), request_text({.request = "Tell me a story.", .story = ""}));
}

}  // namespace
}  // namespace fable
