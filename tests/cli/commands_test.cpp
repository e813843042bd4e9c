// Every other command: what it prints, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/process.h"
#include "support/file_contents.h"
#include "support/shared_files.h"

namespace heddle::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

template <class T>
std::vector<T> numbers(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

json parsed(const std::vector<std::string>& arguments) {
  const Finished run = heddle_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out);
}

TEST(Program, HelpAndVersionAreNoErrors) {
  const Finished version = heddle_program({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("heddle [0-9.]+\n"));
  const Finished help = heddle_program({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"run", "chat", "info", "plan", "bench", "tokenize", "template",
                              "logits", "synth", "quantize", "settings", "devices", "compare"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Finished own = heddle_program({command, "--help"});
    EXPECT_EQ(own.exit_code, 0) << command;
    EXPECT_THAT(own.out, HasSubstr(command));
  }
}

TEST(Program, UsageErrors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{},
        {"dance"},
        {"run", "--no-such-option"},
        {"run", "-n", "many"},
        {"run", "-n", "-2"},
        {"run", "--temp", "-1"},
        {"run", "--top-p", "1.5"},
        {"run", "--seed", "-1"},
        {"run", "--kv-type", "q4_K"},
        {"run", "-p"},
        {"run", "one.gguf", "two.gguf"},
        {"plan", "--json", "--dot"},
        {"plan", "--tokens", "0"},
        {"bench", "-r", "0"},
        {"bench", "-p", "0", "-n", "0"},
        {"template"},
        {"template", "x.jinja", "--now", "yesterday"},
        {"template", "x.jinja", "--now", "2026-03-14"},
        {"template", "x.jinja", "--now", "2026-03-14T15:09:26Z"},
        {"template", "x.jinja", "--now", "2026-02-30T15:09:26"},
        {"logits"},
        {"logits", "--tokens", "1,2"},
        {"logits", "--tokens", "1,x", "-o", "/dev/null"}}) {
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << testing::PrintToString(arguments);
    EXPECT_THAT(run.err, StartsWith("heddle: ")) << testing::PrintToString(arguments);
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST(Program, EveryCommandReportsAMissingModel) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", "-p", "x"},
        {"info"},
        {"plan"},
        {"bench"},
        {"tokenize"},
        {"logits", "--tokens", "1", "-o", testing::TempDir() + "heddle-none"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.begin() + 1, "/no/such.gguf");
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.exit_code, 1) << command.front();
    EXPECT_THAT(run.err, AllOf(StartsWith("heddle: "), HasSubstr("/no/such.gguf")));
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST(Program, ABadSettingIsReported) {
  const std::string command = "HEDDLE_THREADS=lots '" + heddle_path() + "' settings";
  const Finished run = Process({"sh", "-c", command}).finish();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, AllOf(StartsWith("heddle: "), HasSubstr("HEDDLE_THREADS")));
}

TEST(Settings, ListsWhatTheEnvironmentSays) {
  const std::string command = "HEDDLE_THREADS=3 '" + heddle_path() + "' settings";
  const Finished run = Process({"sh", "-c", command}).finish();
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, testing::ContainsRegex("HEDDLE_THREADS +3 "));
  EXPECT_THAT(run.out, HasSubstr("HEDDLE_CPU"));
}

TEST(Devices, EndWithTheCpu) {
  const Finished run = heddle_program({"devices"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out,
              testing::ContainsRegex(
                  "(^|\n)cpu: .+\n  memory +[0-9.]+ [KMGT]iB\n  instructions "
                  "+(AMX|AVX-512|AVX-VNNI|AVX2|NEON.*|portable)\n  kernels +.*\n  processors "
                  "+[0-9]+\n"));
}

TEST(Devices, SayWhyTheCpuHasTheKernelsItHas) {
  const auto kernels = [](const std::string& setting) {
    const std::string command = setting + " '" + heddle_path() + "' devices --json";
    const Finished run = Process({"sh", "-c", command}).finish();
    return json::parse(run.out)["devices"].back()["details"]["kernels"].get<std::string>();
  };
  const std::string best = kernels("HEDDLE_CPU=best");
  EXPECT_THAT(best, testing::ContainsRegex(
                        "^((AMX|NEON with i8mm), the best there are|(AVX-512|AVX-VNNI|AVX2|"
                        "NEON.*|portable), as the processor or the system lacks .+)$"));
  if (!best.starts_with("portable")) {
    EXPECT_THAT(kernels("HEDDLE_CPU=portable"),
                StartsWith("portable, as HEDDLE_CPU says; the processor has "));
  }
}

TEST(Devices, SayWhatMultipliesEachTypeOfWeight) {
  const auto forms = [](const std::string& settings) {
    const std::string command = settings + " '" + heddle_path() + "' devices --json";
    const Finished run = Process({"sh", "-c", command}).finish();
    const json details = json::parse(run.out)["devices"].back()["details"];
    return std::pair(details["weights f32, f16, bf16"].get<std::string>(),
                     details["weights of block types"].get<std::string>());
  };
  const auto [exact, blocks] = forms("HEDDLE_CPU=portable");
  EXPECT_THAT(exact, AllOf(StartsWith("exact: products and sums"), HasSubstr("HEDDLE_CPU=portable"),
                           HasSubstr("HEDDLE_MATMUL=bf16")));
  EXPECT_THAT(blocks, HasSubstr("16-bit integers: products of pairs in 128 bits"));
  EXPECT_THAT(forms("HEDDLE_CPU=portable HEDDLE_MATMUL=bf16").first,
              StartsWith("rounded to bf16 (HEDDLE_MATMUL): multiplied as floats"));
}

TEST(Devices, ALevelThatIsNotHereIsAnError) {
  const json here = parsed({"devices", "--json"})["devices"].back();
  if (here["details"]["instructions"] == "AMX") GTEST_SKIP() << "this processor has all levels";
  const std::string command = "HEDDLE_CPU=amx '" + heddle_path() + "' devices";
  const Finished run = Process({"sh", "-c", command}).finish();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(StartsWith("heddle: HEDDLE_CPU=amx: this processor"), HasSubstr("portable")));
}

TEST(Plan, SaysThatProductsAreRounded) {
  const auto plan = [](const std::string& settings) {
    const std::string command = settings + " '" + heddle_path() + "' plan";
    return Process({"sh", "-c", command}).finish().out;
  };
  EXPECT_THAT(plan("HEDDLE_MATMUL=exact"), Not(HasSubstr("HEDDLE_MATMUL")));
  EXPECT_THAT(plan("HEDDLE_MATMUL=bf16"), HasSubstr("round to bf16 (HEDDLE_MATMUL)"));
}

TEST(Devices, JsonSaysWhyThereIsNoVulkanDevice) {
  const json all = parsed({"devices", "--json"});
  const json& cpu = all["devices"].back();
  EXPECT_EQ(cpu["name"], "cpu");
  EXPECT_GT(cpu["memory"], 0);
  EXPECT_TRUE(cpu["hardware"].is_string());
  EXPECT_TRUE(cpu["details"]["threads"].is_string());
  bool vulkan = false;
  for (const json& device : all["devices"]) {
    vulkan = vulkan || device["name"].get<std::string>().starts_with("vulkan:");
  }
  EXPECT_EQ(all["why_no_vulkan"].is_null(), vulkan);
  const std::string text = heddle_program({"devices"}).out;
  EXPECT_EQ(text.find("no Vulkan device: ") == std::string::npos, vulkan) << text;
}

TEST(DeviceOptions, UnknownDevicesAreRefusedWithThoseThereAre) {
  const std::string logits = testing::TempDir() + "heddle-device-logits.bin";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"run", "-p", "x"}, {"bench"}, {"plan"}, {"logits", "--tokens", "5", "-o", logits}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--device", "cpu,nowhere"});
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.exit_code, 1) << command.front();
    EXPECT_THAT(run.err, AllOf(HasSubstr("\"nowhere\""), HasSubstr("cpu")));
    EXPECT_THAT(run.out, IsEmpty());
  }
  const Finished twice = heddle_program({"run", "-p", "x", "-dev", "cpu,cpu"});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("cpu is there twice"));
}

TEST(DeviceOptions, TheCpuMayBeNamedAndTakesWhatNoGpuGets) {
  const std::vector<std::string> story{"run", "-p", "Once", "-n", "8", "--temp", "0"};
  const std::string expected = heddle_program(story).out;
  EXPECT_THAT(expected, testing::Not(IsEmpty()));
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--device", "cpu"},
                                             {"--device", "cpu", "--lazy"},
                                             {"--gpu-layers", "0"},
                                             {"-ngl", "0"},
                                             {"--device", "cpu", "--n-gpu-layers", "2"}}) {
    std::vector<std::string> arguments = story;
    arguments.insert(arguments.end(), option.begin(), option.end());
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.out, expected) << run.err;
  }
  // An option's text is left as it is.
  const Finished text = heddle_program({"run", "-p", "-ngl", "-n", "1", "--temp", "0"});
  EXPECT_THAT(text.out, StartsWith("-ngl"));
}

/// The program where Vulkan's loader, if there is one, finds no driver.
Finished without_drivers(const std::string& arguments) {
  return Process({"sh", "-c",
                  "VK_DRIVER_FILES=/nowhere VK_ICD_FILENAMES=/nowhere '" + heddle_path() + "' " +
                      arguments})
      .finish();
}

TEST(DeviceOptions, WithoutADriverTheyAreRefusedWithTheReason) {
  const Finished layers = without_drivers("run -p x --gpu-layers 1");
  EXPECT_EQ(layers.exit_code, 1);
  EXPECT_THAT(layers.err, HasSubstr("--gpu-layers 1: there is no device but the CPU (no Vulkan "
                                    "device: "));
  const Finished named = without_drivers("run -p x --device vulkan");
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_THAT(named.err, AllOf(HasSubstr("no device is called \"vulkan\"; there are: cpu"),
                               HasSubstr("(no Vulkan device: ")));
  const Finished list = without_drivers("devices");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, AllOf(StartsWith("cpu: "), HasSubstr("\n\nno Vulkan device: ")));
  EXPECT_EQ(without_drivers("run -p Once -n 2").exit_code, 0);
}

TEST(DeviceOptions, GpuLayersAreANumber) {
  for (const char* number : {"some", "-1", "1.5", ""}) {
    const Finished run = heddle_program({"run", "-p", "x", "--gpu-layers", number});
    EXPECT_EQ(run.exit_code, 2) << number;
    EXPECT_THAT(run.err, HasSubstr("--gpu-layers")) << number;
  }
}

TEST(DeviceOptions, AReportGoesToStandardError) {
  const Finished run = heddle_program({"run", "-p", "Once", "-n", "4", "--report"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("no device but the cpu took part\n"));
  const Finished bench =
      heddle_program({"bench", "-p", "4", "-n", "2", "-r", "1", "--report", "--json"});
  EXPECT_THAT(bench.err, AllOf(HasSubstr("pp4, 1 times\n"), HasSubstr("tg2, 1 times\n")));
  EXPECT_EQ(json::parse(bench.out)[0]["n_gpu_layers"], 0);
}

/// On a machine with a Vulkan device: the fable, told by it, whole and in part.
TEST(DeviceOptions, TheVulkanDeviceTellsTheFable) {
  const json why = parsed({"devices", "--json"})["why_no_vulkan"];
  if (why.is_string()) GTEST_SKIP() << "no Vulkan device: " << why;
  const std::vector<std::string> story{"run", "-p", "Once upon a time", "-n", "40", "--temp", "0"};
  const std::string expected = heddle_program(story).out;
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--device", "vulkan"}, {"--device", "vulkan:0,cpu"}, {"-ngl", "2", "--report"}}) {
    std::vector<std::string> arguments = story;
    arguments.insert(arguments.end(), option.begin(), option.end());
    const Finished run = heddle_program(arguments);
    EXPECT_EQ(run.out, expected) << run.err;
    if (option.back() == "--report") {
      EXPECT_THAT(run.err, HasSubstr("a step of 1 token\n  split 0 on cpu: 1 op"));
      EXPECT_THAT(run.err, AllOf(HasSubstr("vulkan:0: "), HasSubstr(" dispatches: ")));
    }
  }
}

TEST(Info, ShowsTheBundledModel) {
  const Finished run = heddle_program({"info"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* part : {"qwen2", "general.name = \"fable-1m\"", "blk.0.attn_q.weight", "f16",
                           "(907 elements)", "0.86 M"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
}

TEST(Info, Json) {
  const json info = parsed({"info", HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf", "--json"});
  EXPECT_EQ(info["version"], 3);
  EXPECT_EQ(info["bytes"],
            std::filesystem::file_size(HEDDLE_SOURCE_DIR "/models/fable-1m-f16.gguf"));
  EXPECT_EQ(info["metadata"]["tokenizer.ggml.tokens"].size(), 907u);
  EXPECT_EQ(info["metadata"]["tokenizer.ggml.add_bos_token"], false);
  EXPECT_EQ(info["config"]["n_layer"], 4);
  EXPECT_EQ(info["config"]["n_head_kv"], 2);
  bool found = false;
  for (const json& tensor : info["tensors"]) {
    if (tensor["name"] != "token_embd.weight") continue;
    found = true;
    EXPECT_EQ(tensor["shape"], json({907, 128}));
    EXPECT_EQ(tensor["dtype"], "f16");
    EXPECT_EQ(tensor["bytes"], 907 * 128 * 2);
  }
  EXPECT_TRUE(found);
}

TEST(Info, AFileThatIsNoModelStillHasMetadata) {
  HEDDLE_SHARED_FILE(vocabulary, "tokenizers/gpt-2.gguf");
  const Finished text = heddle_program({"info", vocabulary});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("cannot be run: "), HasSubstr("tokenizer.ggml.merges")));
  const json info = parsed({"info", vocabulary, "--json"});
  EXPECT_TRUE(info["config"].is_null());
  EXPECT_TRUE(info["config_error"].is_string());
}

TEST(Plan, Text) {
  const Finished run = heddle_program({"plan", "--verify"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("verified"));
  for (const char* part : {"cpu", "arena", "split", "copies", "attend", "linear"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
}

TEST(Plan, Json) {
  for (const char* tokens : {"1", "512"}) {
    const json plan = parsed({"plan", "--json", "--tokens", tokens});
    EXPECT_EQ(plan["splits"].size(), 1u);  // one device: one split, no copies
    EXPECT_EQ(plan["figures"]["copies"], 0);
    EXPECT_EQ(plan["splits"][0]["ops"], plan["figures"]["total"]["nodes"]);
    EXPECT_EQ(plan["figures"]["device_ops"]["cpu"], plan["figures"]["total"]["nodes"]);
    EXPECT_TRUE(plan["figures"]["host_ops"].empty());
    ASSERT_EQ(plan["arenas"].size(), 1u);
    const double bytes = plan["arenas"][0]["bytes"], bound = plan["arenas"][0]["lower_bound"];
    EXPECT_GT(bound, 0);
    EXPECT_LE(bytes, 1.05 * bound);
    EXPECT_GT(plan["figures"]["families"]["linear"]["operations"], 0);
  }
}

TEST(Plan, Dot) {
  const Finished run = heddle_program({"plan", "--dot"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(StartsWith("digraph"), HasSubstr("->"), testing::EndsWith("}\n")));
}

TEST(Plan, RefusesMoreTokensThanAChunk) {
  const Finished run = heddle_program({"plan", "--tokens", "100", "--chunk", "10"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("--chunk"));
}

TEST(Bench, JsonHasTheNamesOfLlamaBench) {
  const json tests =
      parsed({"bench", "-p", "16", "-n", "4", "-r", "3", "-t", "2", "--kv-type", "f32", "--json"});
  ASSERT_EQ(tests.size(), 2u);
  for (const json& test : tests) {
    EXPECT_EQ(test["n_threads"], 2);
    EXPECT_EQ(test["type_k"], "f32");
    EXPECT_TRUE(test["cpu_info"].is_string());
    EXPECT_GT(test["model_size"], 1'000'000);
    EXPECT_GT(test["model_n_params"], 800'000);
    ASSERT_EQ(test["samples_ts"].size(), 3u);
    ASSERT_EQ(test["samples_ns"].size(), 3u);
    const double tokens = double(test["n_prompt"]) + double(test["n_gen"]);
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double rate = test["samples_ts"][i];
      EXPECT_NEAR(rate, tokens / double(test["samples_ns"][i]) * 1e9, 1e-6 * rate);
      mean += rate / 3;
    }
    for (const double rate : test["samples_ts"]) squares += (rate - mean) * (rate - mean);
    EXPECT_NEAR(test["avg_ts"], mean, 1e-6 * mean);
    EXPECT_NEAR(test["stddev_ts"], std::sqrt(squares / 2), 1e-6 * mean);
  }
  EXPECT_EQ(tests[0]["n_prompt"], 16);
  EXPECT_EQ(tests[0]["n_gen"], 0);
  EXPECT_EQ(tests[1]["n_prompt"], 0);
  EXPECT_EQ(tests[1]["n_gen"], 4);
}

TEST(Bench, Table) {
  const Finished run = heddle_program({"bench", "-p", "8", "-n", "2", "-r", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("| model"), HasSubstr(" pp8 |"), HasSubstr(" tg2 |"),
                             HasSubstr("fable-1m f16"), HasSubstr(" ± 0.00")));
  const Finished one = heddle_program({"bench", "-p", "0", "-n", "2", "-r", "1"});
  EXPECT_THAT(one.out, testing::Not(HasSubstr("pp")));
}

TEST(Bench, RefusesWhatTheContextCannotHold) {
  for (const char* option : {"-p", "-n"}) {
    const Finished run = heddle_program({"bench", option, "600"});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr(std::string(option) + " 600: the model has a context of 512"));
  }
}

TEST(Tokenize, TextInIdsOut) {
  EXPECT_EQ(heddle_program({"tokenize"}, "").out, "\n");
  const Finished plain = heddle_program({"tokenize"}, "a<|im_end|>");
  const Finished special = heddle_program({"tokenize", "--parse-special"}, "a<|im_end|>");
  EXPECT_THAT(special.out, testing::MatchesRegex("[0-9]+ 90[0-9]\n"));
  EXPECT_GT(plain.out.size(), special.out.size());
}

TEST(Tokenize, NoBos) {
  HEDDLE_SHARED_FILE(model, "models/stories260K.gguf");
  const std::string with = heddle_program({"tokenize", model}, "once").out;
  const std::string without = heddle_program({"tokenize", model, "--no-bos"}, "once").out;
  EXPECT_EQ(with, "1 " + without);
}

/// The texts of a vocabulary's test file, and their ids as lines.
void expect_reference_ids(const std::string& name) {
  const std::filesystem::path base = shared_dir() / "tokenizers";
  const std::string texts = contents(base / (name + ".inp"));
  std::istringstream expected(contents(base / (name + ".out")));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::size_t at = 0;
  std::string line;
  // A process a case is slow for large vocabularies; the library's own tests try every one.
  for (int cases = 0; cases < 5 && std::getline(expected, line); ++cases) {
    const std::size_t end = texts.find(separator, at);
    const std::string text = texts.substr(at, end - at);
    at = end + separator.size();
    while (line.starts_with(' ')) line.erase(0, 1);
    while (line.ends_with(' ')) line.pop_back();
    const Finished run = heddle_program({"tokenize", base / (name + ".gguf"), "--no-bos"}, text);
    EXPECT_EQ(run.out, line + "\n") << name << ": " << text;
  }
}

TEST(Tokenize, ReferenceVocabularies) {
  HEDDLE_SHARED_FILE(directory, "tokenizers");
  for (const char* name : {"gpt-2", "llama-spm"}) expect_reference_ids(name);
}

std::string written_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Template, RendersTheContextFromStandardInput) {
  const std::string path =
      written_file("heddle-chat.jinja",
                   "{% for m in messages %}\n<|{{ m.role }}|>{{ m.content | tojson }}\n"
                   "{% endfor %}\n{{ strftime_now('%d %B %Y %H:%M:%S, %A') }}\n");
  const Finished run = heddle_program({"template", path, "--now", "2026-03-14T15:09:26"},
                                      R"({"messages": [{"role": "user", "content": "\"é\""}]})");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "<|user|>\"\\\"é\\\"\"\n14 March 2026 15:09:26, Saturday");
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_EQ(heddle_program({"template", written_file("heddle-empty.jinja", "")}, "{}").out, "");
}

TEST(Template, SaysWhatIsWrong) {
  const std::string good = written_file("heddle-good.jinja", "{{ messages[0].content }}");
  const std::string bad = written_file("heddle-bad.jinja", "\n{{ 1 + }}");
  for (const auto& [path, input, message] : std::vector<std::array<std::string, 3>>{
           {"no-such-file.jinja", "{}", "heddle: no-such-file.jinja: No such file"},
           {testing::TempDir(), "{}", "Is a directory"},
           {bad, "{}", "heddle: chat template, line 2, column 8: expected an expression"},
           {good, "{}", "heddle: chat template, line 1, column 12: 'messages' is undefined"},
           {good, "", "the context is not JSON"},
           {good, "[]", "the context must be a JSON object"}}) {
    const Finished run = heddle_program({"template", path}, input);
    EXPECT_EQ(run.exit_code, 1) << path;
    EXPECT_THAT(run.err, HasSubstr(message));
    EXPECT_THAT(run.out, IsEmpty());
  }
}

TEST(Logits, WritesARowAToken) {
  const std::string path = testing::TempDir() + "heddle-logits.bin";
  const Finished run = heddle_program({"logits", "--tokens", "5,6,7", "-o", path});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, IsEmpty());
  const std::vector<float> rows = numbers<float>(contents(path));
  EXPECT_EQ(rows.size(), 3u * 907);
  // What the company of other tokens and the cut into chunks must not change.
  heddle_program({"logits", "--tokens", "5,6", "--chunk", "1", "-o", path});
  const std::vector<float> fewer = numbers<float>(contents(path));
  ASSERT_EQ(fewer.size(), 2u * 907);
  EXPECT_EQ(std::memcmp(fewer.data(), rows.data(), fewer.size() * sizeof(float)), 0);
  std::filesystem::remove(path);
}

TEST(Logits, AreThoseOfTheReference) {
  HEDDLE_SHARED_FILE(model, "reference/tiny/tiny-llama-f32.gguf");
  const json reference = json::parse(contents(shared_dir() / "reference/tiny/tiny.json"));
  std::string tokens;
  for (const int id : reference["tokens"])
    tokens += (tokens.empty() ? "" : ",") + std::to_string(id);
  const std::string path = testing::TempDir() + "heddle-tiny-logits.bin";
  const Finished run =
      heddle_program({"logits", model, "--tokens", tokens, "--kv-type", "f32", "-o", path});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto got = numbers<float>(contents(path));
  const auto expected =
      numbers<double>(contents(shared_dir() / "reference/tiny/tiny-llama-f32.logits.f64"));
  ASSERT_EQ(got.size(), expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - expected[i], 2);
    size += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(difference / size), 1e-4);
  std::filesystem::remove(path);
}

TEST(Logits, RefusesIdsAndPlacesThatAreNot) {
  const std::string path = testing::TempDir() + "heddle-no-logits.bin";
  const Finished id = heddle_program({"logits", "--tokens", "5,907", "-o", path});
  EXPECT_EQ(id.exit_code, 1);
  EXPECT_THAT(id.err, HasSubstr("907"));
  EXPECT_FALSE(std::filesystem::exists(path));  // not even a part of it
  const Finished place = heddle_program({"logits", "--tokens", "5", "-o", "/no/such/place"});
  EXPECT_EQ(place.exit_code, 1);
  EXPECT_THAT(place.err, HasSubstr("/no/such/place"));
}

}  // namespace
}  // namespace heddle::test
