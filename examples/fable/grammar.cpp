#include "grammar.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace fable {
namespace {

/// What a symbol may become, each as likely as the others; one that is there twice, twice. In a
/// text
///   <rule>   is one of that rule's texts, chosen anew each time;
///   {slot}   is chosen where it first occurs, and the same from then on (see kSlots);
///   a(n)     is "a" or "an", as what follows sounds.
struct Rule {
  std::string_view name;
  std::initializer_list<std::string_view> texts;
};

const Rule kRules[] = {
    {"name",
     {"Ella", "Finn", "Rosa", "Nora", "Ruby", "Sam", "Mia", "Hugo", "Oscar", "Pip", "Max", "Ben",
      "Lily", "Ivy", "Wren", "Leo", "Tim", "Tess"}},
    {"animal",
     {"frog", "bear", "deer", "hedgehog", "duck", "turtle", "otter", "owl", "goat", "mouse",
      "rabbit", "beaver", "crow", "wolf", "fox", "cat", "squirrel", "badger"}},
    {"place",
     {"river", "lake", "old bridge", "forest", "hill", "sea", "garden", "village", "big oak tree",
      "meadow"}},
    {"thing",
     {"blue kite", "yellow hat", "round stone", "small boat", "wooden drum", "tiny lamp",
      "warm scarf", "silver bell", "old map", "sweet apple", "red ball", "shiny key"}},
    {"trait",
     {"curious", "hungry", "patient", "sleepy", "cheerful", "kind", "clever", "careful", "shy",
      "brave"}},
    {"weather", {"bright", "quiet", "rainy", "windy", "cold", "foggy", "sunny"}},
    {"sorrow", {"sad", "tired", "worried", "lonely", "afraid"}},
    {"joy", {"proud", "calm", "glad", "thankful", "happy"}},
    {"pronouns", {"he him his", "she her her"}},

    {"request",
     {"Tell me a story.", "Tell me a story about a(n) {animal}.",
      "Please tell me a story about a(n) {thing}.",
      "Can you tell a story with a(n) {animal} in it?",
      "Write a short story about a(n) {animal} and a(n) {thing}."}},

    {"fable", {"<beginning>\n<trouble>"}},
    {"beginning", {"<opening> <habit> <meeting>"}},
    {"opening",
     {"Once upon a time, a(n) <trait> {animal} named {hero} lived near the {home}.",
      "Once upon a time there was a(n) <trait> {animal} named {hero}.",
      "There once was a(n) {animal} named {hero}, who was very <trait>."}},
    {"habit",
     {"{hero} loved to walk to the {home} every day.",
      "{hero} had a(n) {thing} and took it everywhere.",
      "Every morning {hero} went to the {home} to play with {his} {thing}."}},
    {"meeting",
     {"One day it was very <weather>, and {hero} saw a(n) {other} named {friend} by the "
      "{spot}.",
      "One <weather> day, {hero} met a(n) <trait> {other} named {friend}."}},
    {"ending",
     {"From that day on, {hero} and {friend} were friends.",
      "They went home together, <joy> and tired.", "{friend} smiled, and {hero} was <joy>.",
      "{hero} and {friend} were very <joy>."}},

    // Two of three fables end with what they teach; the others with what solved the trouble.
    {"trouble",
     {"<sharing> <shared>\n<ending> A thing is best when it is shared.",
      "<sharing> <shared>\n<ending> A thing is best when it is shared.",
      "<sharing>\n<shared> <ending>", "<rain> <sun>\n<ending> Good things come to those who wait.",
      "<rain> <sun>\n<ending> Good things come to those who wait.", "<rain>\n<sun> <ending>",
      "<stuck> <free>\n<ending> Keep trying, and you will find a way.",
      "<stuck> <free>\n<ending> Keep trying, and you will find a way.", "<stuck>\n<free> <ending>",
      "<lost> <found>\n<ending> It is good to help a friend.",
      "<lost> <found>\n<ending> It is good to help a friend.", "<lost>\n<found> <ending>",
      "<astray> <shown>\n<ending> When you do not know, ask.",
      "<astray> <shown>\n<ending> When you do not know, ask.", "<astray>\n<shown> <ending>",
      "<broken> <forgiven>\n<ending> It is best to tell the truth.",
      "<broken> <forgiven>\n<ending> It is best to tell the truth.",
      "<broken>\n<forgiven> <ending>"}},

    {"sharing", {"{friend} wanted to play with the {thing} too. <refusal> <hurt> <insight>"}},
    {"refusal",
     {"At first {hero} said, \"No, the {thing} is mine.\"",
      "{hero} held the {thing} tight and did not want to share."}},
    {"hurt",
     {"{friend} was <sorrow> and did not say a word.",
      "{friend} went away and sat by the {spot}, feeling <sorrow>."}},
    {"insight",
     {"Then {hero} felt <sorrow> too, for it was no fun to play alone.",
      "{hero} thought about it and saw that playing alone was no fun."}},
    {"shared", {"\"Come and play with me,\" said {hero}. \"We can share the {thing}.\""}},

    {"rain",
     {"{hero} wanted to go to the {spot} at once, but the rain would not stop. \"Let us "
      "wait here,\" said {friend}. \"The rain will end soon.\" <waiting>"}},
    {"waiting",
     {"{hero} did not like to wait and felt <sorrow>.",
      "{hero} did not like to wait and felt <sorrow>.",
      "They sat under a tree and played with the {thing}."}},
    {"sun", {"In the end the sun came out, and the path to the {spot} was full of flowers."}},

    {"stuck", {"The {thing} <out of reach>. <attempt> <despair> <advice>"}},
    {"out of reach",
     {"was stuck high up in a tree near the {spot}", "had fallen into a deep hole by the {spot}"}},
    {"attempt",
     {"{hero} tried to get it, but it was too far.",
      "{hero} tried once, and {he} tried again, but it did not work."}},
    {"despair",
     {"\"It is too hard,\" said {hero}, who felt <sorrow>.",
      "{hero} was <sorrow> and wanted to go home."}},
    {"advice",
     {"\"Try one more time,\" said {friend}. \"You can stand on my back.\"",
      "{friend} brought a long stick and said, \"Now try again.\""}},
    {"free", {"{hero} tried one more time, and this time the {thing} came free."}},

    {"lost", {"<loss> <comfort> <search>"}},
    {"loss",
     {"\"I lost my {thing},\" said {friend}, who was very <sorrow>.",
      "\"I lost my {thing},\" said {friend}, who was very <sorrow>.",
      "{hero} was <sorrow> because {friend} had lost a(n) {thing}."}},
    {"comfort",
     {"\"Do not be <sorrow>,\" said {hero}. \"I will help you look for it.\"",
      "{hero} said, \"Let us look for it together.\""}},
    {"search",
     {"They walked to the {spot} and looked under every leaf.",
      "They looked near the {home}, and then they looked near the {spot}."}},
    {"found",
     {"There it was, the {thing}, next to a big rock.",
      "At last {hero} found the {thing} behind a tree.",
      "The {thing} was under a bush by the {spot}!"}},

    {"astray",
     {"{hero} wanted to find the way to the {spot}, but {he} did not know the path. "
      "{hero} walked left, and then right, and soon {he} was lost and <sorrow>. "
      "<rebuke>"}},
    {"rebuke",
     {"\"Why did you not ask?\" said {friend}.",
      "\"I know the way,\" said {friend}. \"You only had to ask.\""}},
    {"shown",
     {"{friend} showed {him} the way, and {hero} gave {friend} the {thing} to say thank "
      "you."}},

    {"broken", {"<accident> <reaction> <confession>"}},
    {"accident",
     {"{hero} broke the {thing} that belonged to {friend}.",
      "By mistake, {hero} dropped the {thing} of {friend} and it broke."}},
    {"reaction",
     {"\"Who broke my {thing}?\" asked {friend}.", "{hero} was <sorrow> and wanted to hide."}},
    {"confession",
     {"{hero} said, \"It was me. I am very sorry.\"",
      "\"I did it, and I am sorry,\" said {hero}."}},
    {"forgiven",
     {"\"Thank you for telling me,\" said {friend}. \"We can mend it.\"",
      "{friend} was not angry, and they mended the {thing} together."}},
};

/// A slot is filled from a rule, by none that is in another slot of the same rule if `distinct`.
struct Slot {
  std::string_view name, rule;
  bool distinct = false;
  int word = -1;  // of the text; -1: all of it
};

const Slot kSlots[] = {
    {"hero", "name", true},
    {"friend", "name", true},
    {"animal", "animal"},
    {"other", "animal"},
    {"home", "place", true},
    {"spot", "place", true},
    {"thing", "thing"},
    {"he", "pronouns", false, 0},
    {"him", "pronouns", false, 1},
    {"his", "pronouns", false, 2},
};

template <class T, std::size_t N>
const T& by_name(const T (&all)[N], std::string_view name) {
  const auto found =
      std::find_if(std::begin(all), std::end(all), [&](const T& one) { return one.name == name; });
  if (found == std::end(all)) throw std::logic_error("the grammar has no " + std::string(name));
  return *found;
}

std::string_view word_of(std::string_view text, int word) {
  for (; word > 0; --word) text.remove_prefix(text.find(' ') + 1);
  return text.substr(0, text.find(' '));
}

class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  std::string write(std::string_view rule) {
    std::string text;
    expand(choose({by_name(kRules, rule).texts}), text);
    return with_articles(text);
  }

  double take_nats() { return std::exchange(nats_, 0.0); }

 private:
  std::string_view choose(const std::vector<std::string_view>& texts) {
    const std::string_view text = texts[random_.below(texts.size())];
    const auto likely = static_cast<double>(std::count(texts.begin(), texts.end(), text));
    nats_ += std::log(static_cast<double>(texts.size()) / likely);
    return text;
  }

  void expand(std::string_view text, std::string& out) {
    while (!text.empty()) {
      const std::size_t begin = text.find_first_of("<{");
      out += text.substr(0, begin);
      if (begin == std::string_view::npos) return;
      const std::size_t end = text.find_first_of(">}", begin);
      const std::string_view name = text.substr(begin + 1, end - begin - 1);
      if (text[begin] == '<') {
        expand(choose({by_name(kRules, name).texts}), out);
      } else {
        out += filled(by_name(kSlots, name));
      }
      text.remove_prefix(end + 1);
    }
  }

  std::string_view filled(const Slot& slot) {
    // The words of one text share it.
    const std::string_view key = slot.word < 0 ? slot.name : slot.rule;
    auto found = fillings_.find(key);
    if (found == fillings_.end()) {
      std::vector<std::string_view> texts{by_name(kRules, slot.rule).texts};
      for (const Slot& other : kSlots) {
        const auto taken = fillings_.find(other.name);
        if (slot.distinct && other.rule == slot.rule && taken != fillings_.end()) {
          std::erase(texts, taken->second);
        }
      }
      found = fillings_.emplace(key, choose(texts)).first;
    }
    return slot.word < 0 ? found->second : word_of(found->second, slot.word);
  }

  static std::string with_articles(std::string_view text) {
    constexpr std::string_view kArticle = "a(n) ";
    std::string result;
    for (std::size_t at; (at = text.find(kArticle)) != std::string_view::npos;) {
      result += text.substr(0, at);
      text.remove_prefix(at + kArticle.size());
      const bool vowel = std::string_view("aeiou").find(text.front()) != std::string_view::npos;
      result += vowel ? "an " : "a ";
    }
    return result += text;
  }

  Random& random_;
  std::map<std::string_view, std::string_view> fillings_;
  double nats_ = 0;
};

Fable write(Random& random, bool on_request) {
  Writer writer(random);
  Fable fable;
  if (on_request) fable.request = writer.write("request");
  writer.take_nats();
  fable.story = writer.write("fable");
  fable.nats = writer.take_nats();
  return fable;
}

}  // namespace

Fable write_fable(Random& random) {
  return write(random, random.below(2) == 1);
}
Fable write_fable_unasked(Random& random) {
  return write(random, false);
}
Fable write_fable_on_request(Random& random) {
  return write(random, true);
}

}  // namespace fable
