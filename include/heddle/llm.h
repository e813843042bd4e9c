// Language models: open a GGUF file, keep sequences in a block-addressed KV cache, and step batches
// of decode rows and prompt chunks through one recorded plan per capacity.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/executable.h"
#include "heddle/gguf.h"
#include "heddle/grammar.h"
#include "heddle/tokenizer.h"

namespace heddle::llm {

/// What a model is, read from a GGUF file's metadata and tensors (general.architecture = llama,
/// qwen2 or qwen3; Mistral and its kin say llama).
struct ModelConfig {
  std::string architecture, name;
  std::int64_t n_vocab = 0;
  std::int64_t n_ctx_train = 0;  // positions the model was made for
  std::int64_t n_embd = 0, n_layer = 0, n_ff = 0;
  std::int64_t n_head = 0, n_head_kv = 0,
               n_embd_head = 0;  // query heads, KV heads, features a head
  float rms_eps = 1e-5f;
  RopeAngles rope;            // style, dims, base, linear scale; has_factors with rope_freqs.weight
  std::int64_t window = 0;    // sliding window; 0: none
  bool has_qkv_bias = false;  // attn_q.bias, attn_k.bias, attn_v.bias (qwen2)
  bool has_output_bias = false;  // attn_output.bias
  bool has_qk_norm = false;      // attn_q_norm.weight, ... (qwen3)
  bool tied_output = false;      // no output.weight: token_embd.weight serves
};

/// Throws Error(unsupported) naming an architecture or rope scaling that is not known, Error(io)
/// naming a key that is missing or makes no sense, or a tensor that is missing, misshapen, or of a
/// type its place cannot take.
ModelConfig read_config(const gguf::File& file);

/// An open model: configuration, vocabulary and weights, which its contexts share. Thread-safe.
class Model {
 public:
  /// The vocabulary's arrays are left out of `file().metadata()`: the tokenizer has read them, and
  /// they are large.
  static std::shared_ptr<Model> open(const std::filesystem::path& path);
  static std::shared_ptr<Model> from_file(gguf::File file);
  /// The model that is built into the library.
  static std::shared_ptr<Model> bundled();

  const gguf::File& file() const noexcept { return file_; }
  const ModelConfig& config() const noexcept { return config_; }
  const Tokenizer& tokenizer() const noexcept { return tokenizer_; }
  const Ref<Parameters>& parameters() const noexcept { return parameters_; }
  std::uint64_t weight_bytes() const noexcept;
  std::int64_t parameter_count() const noexcept;

 private:
  explicit Model(gguf::File file);
  gguf::File file_;
  ModelConfig config_;
  Tokenizer tokenizer_;
  Ref<Parameters> parameters_;
};

/// One step's inputs as arrays. T tokens of S sequences whose blocks are B long rows of the table;
/// R rows go to the output product.
struct BatchArrays {
  Array tokens, positions, seq, rows;  // i32 [T]; seq -1 and row -1: idle
  Array block_table;                   // i32 [S, B]
  Array lengths;                       // i32 [S], this step's tokens counted
  Array output_rows;                   // i32 [R], which tokens' logits are wanted
};

/// Which device each part of a model runs on, its weights and KV states with it. Null, or no
/// layers: wherever evaluation or compiling puts it.
struct LayerDevices {
  Device* embedding = nullptr;
  std::vector<Device*> layers;  // of each layer
  Device* output = nullptr;     // the last norm and the product that gives the logits
};

/// The model as Array code, traced for plans and run as it is lazily. `weight` finds a tensor by
/// its GGUF name; `keys` and `values` are the layers' KV states [rows, n_head_kv, n_embd_head],
/// replaced by their next versions. Returns f32 [R, n_vocab]. Each part is made in the DeviceScope
/// of its device.
Array forward(const ModelConfig& config, const std::function<Array(const std::string&)>& weight,
              const BatchArrays& batch, std::int64_t block_size, std::vector<Array>& keys,
              std::vector<Array>& values, const LayerDevices& devices = {});

/// `forward` up to the last norm: f32 [R, n_embd].
Array hidden_rows(const ModelConfig& config, const std::function<Array(const std::string&)>& weight,
                  const BatchArrays& batch, std::int64_t block_size, std::vector<Array>& keys,
                  std::vector<Array>& values, const LayerDevices& devices = {});

struct ContextOptions {
  std::int64_t n_ctx =
      0;  // positions a sequence may have; 0: the model's, or what memory allows up to 4096
  std::int64_t n_seq_max = 1;   // sequences at once
  std::int64_t n_seq_step = 0;  // of which one step may have so many; 0: all
  /// Positions that KV memory holds for all sequences together, in whole blocks; what they share
  /// counts once. 0: n_ctx for each of n_seq_step.
  std::int64_t n_kv = 0;
  DType kv_type = DType::f16;  // f32, f16 or q8_0
  std::int64_t chunk = 512;    // tokens of a prompt that are computed at once
  int threads = 0;             // 0: HEDDLE_THREADS or what the process may use
  bool lazy = false;           // run the model's array code node by node, without plans
  /// Devices that share the layers: a run of consecutive ones each, in this order and in proportion
  /// to their memory. The first has the embedding too, the last the output. Every tensor must fit
  /// there, and have kernels there for the ops that read it; other ops that a device lacks run on
  /// the CPU. None: wherever `compile` puts them, or, with gpu_layers, the first device that is not
  /// the CPU.
  std::vector<Device*> devices;
  /// Only the first so many layers go to `devices`; the CPU has the others, the embedding and the
  /// output. More than there are layers, or nothing: all of the model goes to `devices`.
  std::optional<std::int64_t> gpu_layers;
  CompileOptions compile;
};

using SequenceId = std::int32_t;

/// Tokens to add to one sequence in a step, at its end.
struct StepItem {
  SequenceId sequence = 0;
  std::span<const TokenId> tokens;
  bool all_logits = false;   // of every token, not of the last one only
  bool wants_logits = true;  // false: of none, as of a prompt that goes on in a later step
};

/// KV memory, plans and sequences of one model. One step at a time; a second caller waits.
///
/// KV rows are handed out in blocks of 32 positions that are counted and copied on write, so that
/// copies of a sequence share what they have in common.
class Context {
 public:
  /// Sums weights, KV and arenas against each device's memory before anything is allocated or
  /// loaded; throws out_of_memory naming the first tensor that does not fit, what is needed, and
  /// which of --gpu-layers, -c, --kv-type or a smaller type would fit. Throws unsupported naming
  /// the first tensor that the device asked for has no kernel to read, and invalid_argument for
  /// n_ctx beyond the model's.
  Context(std::shared_ptr<const Model> model, const ContextOptions& options);
  ~Context();

  const Model& model() const noexcept;
  const ContextOptions& options() const noexcept;  // with every 0 replaced by its value

  /// A new, empty sequence. Throws out_of_memory when n_seq_max are in use.
  SequenceId create();
  /// A new sequence with the same tokens behind it, sharing their blocks.
  SequenceId fork(SequenceId sequence);
  void release(SequenceId sequence);
  /// Forgets all positions from `length` on.
  void truncate(SequenceId sequence, std::int64_t length);
  std::int64_t length(SequenceId sequence) const;

  /// Called with (tokens done, tokens in all) as a long step goes on; returning false cancels it
  /// (the step throws Error(cancelled), and the sequences are as before it).
  using Progress = std::function<bool(std::int64_t, std::int64_t)>;

  /// Adds tokens to sequences, in chunks, decode rows and prompts side by side; returns the logits
  /// asked for, f32 rows of n_vocab in the items' order. Throws invalid_argument naming the
  /// sequence for a position beyond n_ctx or an id outside the vocabulary, and for more sequences
  /// than n_seq_step; out_of_memory when KV memory is full. Then nothing has changed.
  ///
  /// A step in which a device is lost throws device_lost (or timeout), and so does every later step
  /// of a sequence that had positions by then, until it is truncated to 0 or released: its KV is
  /// gone. New sequences work at once.
  std::vector<float> step(std::span<const StepItem> items, const Progress& progress = nullptr);
  std::vector<float> step(SequenceId sequence, std::span<const TokenId> tokens,
                          bool all_logits = false);
  /// The same into memory of the caller's, as large as the rows asked for.
  void step_into(std::span<const StepItem> items, std::span<float> logits,
                 const Progress& progress = nullptr);
  /// Adds tokens as `step` does, and returns what the last norm makes of those whose logits were
  /// asked for: f32 rows of n_embd.
  std::vector<float> hidden(std::span<const StepItem> items, const Progress& progress = nullptr);

  /// Whether a step of the sequence would throw device_lost: its KV went with a device, or with a
  /// step that failed.
  bool is_lost(SequenceId sequence);

  struct KvUse {
    std::int64_t block_size = 0;  // positions
    std::int64_t blocks = 0, free = 0;
  };
  KvUse kv_use() const;
  /// How many free blocks it takes to add so many tokens to a sequence.
  std::int64_t blocks_to_add(SequenceId sequence, std::int64_t tokens) const;
  /// How many blocks would become free if these sequences were released.
  std::int64_t blocks_held_by(std::span<const SequenceId> sequences) const;

  struct MemoryUse {
    std::uint64_t weights = 0, kv = 0, arenas = 0;
  };
  MemoryUse memory() const;
  /// Where each part of the model runs; empty if nobody asked for devices.
  const LayerDevices& devices() const noexcept;
  /// How often each op has run on the CPU though another device was asked for, by name.
  std::map<std::string, std::uint64_t> host_ops() const;
  /// The plan of the smallest capacity that holds `tokens` tokens, for showing.
  const Plan& plan_for(std::int64_t tokens);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct SamplerOptions {
  float temperature = 0.8f;  // 0: the likeliest token
  std::int64_t top_k = 40;   // 0: all
  float top_p = 0.95f, min_p = 0.05f;
  float repeat_penalty =
      1.0f;  // divides positive logits of recent tokens, multiplies negative ones
  std::int64_t repeat_last_n = 64;
  std::uint64_t seed = 0;
  float presence_penalty = 0;   // taken from the logit of a token that the reply has already
  float frequency_penalty = 0;  // and this, for each time that it has it
  /// Added to the logits of these tokens, before all else. Of -100 or less: never sampled.
  std::map<TokenId, float> logit_bias;
};

/// Picks tokens. Ties go to the lowest id. Not thread-safe.
class Sampler {
 public:
  /// Throws invalid_argument naming an option that is out of range.
  explicit Sampler(const SamplerOptions& options);
  /// Throws backend when every logit is NaN or -inf.
  TokenId sample(std::span<const float> logits);
  /// Tells it of a token that the reply has now, sampled or not.
  void accept(TokenId token);
  /// Tells it of what stands before the reply: only repeat_penalty looks at that.
  void accept_prompt(std::span<const TokenId> tokens);

 private:
  void remember(TokenId token);

  SamplerOptions options_;
  std::mt19937_64 random_;
  std::vector<TokenId> recent_;
  std::map<TokenId, std::int64_t> counts_;  // of the reply's tokens
};

struct GenerateOptions {
  std::int64_t max_tokens = -1;   // -1: until the end token or the end of the context
  std::vector<std::string> stop;  // texts that end it, not given out
  SamplerOptions sampler;
  /// What the text after the prompt may be; none: anything. It ends where nothing can follow. Costs
  /// some tens of milliseconds at the beginning, and throws what GrammarMatcher does.
  std::shared_ptr<const Grammar> grammar;
  Context::Progress progress;  // of the prompt; returning false stops it
};

enum class StopReason { end_token, max_tokens, stop_text, context_full, cancelled };

struct GenerateResult {
  StopReason reason = StopReason::end_token;
  std::int64_t prompt_tokens = 0, generated_tokens = 0;
  double prompt_seconds = 0, generate_seconds = 0;
};

/// Continues `prompt` in a sequence, giving out text as whole characters. `on_text` returning false
/// stops it (StopReason::cancelled); it is called once for each token, with nothing while a
/// character is half there. Text that may yet become a stop text is held back. An empty prompt
/// means the beginning-of-sequence token; it throws invalid_argument where the vocabulary has none,
/// or the sequence has begun. Throws what Context::step throws.
GenerateResult generate(Context& context, SequenceId sequence, std::span<const TokenId> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(std::string_view)>& on_text);

}  // namespace heddle::llm
