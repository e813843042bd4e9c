// Ops along a sequence: rotary positions, attention, state spaces.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"

namespace heddle {

// ---- Attention and positions

enum class RopeStyle : std::uint8_t {
  interleaved,  // pairs (2i, 2i+1): llama's "norm"
  split_half,   // pairs (i, i + dims/2): "neox"
};
std::string_view to_string(RopeStyle style) noexcept;

/// The angles of a rotary embedding: pair i of the first `dims` features at position p turns by
/// p * scale * base^(-2i/dims) / factor[i].
struct RopeAngles {
  RopeStyle style = RopeStyle::split_half;
  std::int64_t dims = 0;  // features that turn; even; the others pass
  float base = 10000.0f;
  float scale = 1.0f;        // of positions: 1/4 for a context stretched four times
  bool has_factors = false;  // an operand f32 [dims/2] divides the frequencies
  bool operator==(const RopeAngles&) const = default;
  void fields(auto&& f) const {
    f("style", style), f("dims", dims), f("base", base), f("scale", scale),
        f("has_factors", has_factors);
  }
};

/// x [T, H, D], [bias [H*D]], pos i32 [T], [factors f32 [dims/2]] -> x + bias, turned by angles
struct Rope {
  static constexpr std::string_view kName = "rope";
  RopeAngles angles;
  bool has_bias = false;
  bool operator==(const Rope&) const = default;
  void fields(auto&& f) const { angles.fields(f), f("has_bias", has_bias); }
};

/// x [T, H, D], cos and sin f32 [P, dims/2], index i32 [T] (`by_position`) -> x turned by the angle
/// whose cosine and sine the tables' row index[t] holds; without `by_position`, P = T and row t.
struct RopeTable {
  static constexpr std::string_view kName = "rope_table";
  RopeStyle style = RopeStyle::split_half;
  bool by_position = true;
  bool operator==(const RopeTable&) const = default;
  void fields(auto&& f) const { f("style", style), f("by_position", by_position); }
};

/// state [R, H, D], x [T, H, D], row i32 [T], [bias [H*D]], then with `rope`: pos i32 [T],
/// [factors] -> the state's next version: write_rows(state, rope(x + bias)).
struct RopeWriteRows {
  static constexpr std::string_view kName = "rope_write_rows";
  bool has_bias = false, rope = true;
  RopeAngles angles;
  bool operator==(const RopeWriteRows&) const = default;
  void fields(auto&& f) const { f("has_bias", has_bias), f("rope", rope), angles.fields(f); }
};

/// x [T, H, D], [weight [D]], pos i32 [T], [factors f32 [dims/2]] -> rope(rms_norm(x, weight)):
/// each head is normalised over its D features, then turned.
struct NormRope {
  static constexpr std::string_view kName = "norm_rope";
  float eps = 1e-6f;
  bool has_weight = true;
  RopeAngles angles;
  bool operator==(const NormRope&) const = default;
  void fields(auto&& f) const { f("eps", eps), f("has_weight", has_weight), angles.fields(f); }
};

/// state [R, H, D], x [T, H, D], row i32 [T], [weight [D]], pos i32 [T], [factors] -> the state's
/// next version: write_rows(state, norm_rope(x))
struct NormRopeWriteRows {
  static constexpr std::string_view kName = "norm_rope_write_rows";
  float eps = 1e-6f;
  bool has_weight = true;
  RopeAngles angles;
  bool operator==(const NormRopeWriteRows&) const = default;
  void fields(auto&& f) const { f("eps", eps), f("has_weight", has_weight), angles.fields(f); }
};

/// q, k, v, [mask], [sinks] -> softmax(q k^T * scale + mask) v.
/// q [B,Hq,Sq,D], k [B,Hkv,Sk,D], v [B,Hkv,Sk,Dv] -> [B,Hq,Sq,Dv]; with `sequence_first` the middle
/// two axes are swapped, in and out. Hq is a multiple of Hkv. Query i stands at position
/// Sk - Sq + i. A fully masked row gives zeros. The mask broadcasts to [B,Hq,Sq,Sk]. Sinks [Hq] (of
/// q's dtype or f32) are one more score of each head, which takes its part of the softmax and has
/// no value.
struct Attention {
  static constexpr std::string_view kName = "attention";
  enum class Mask : std::uint8_t { none, causal, boolean, additive } mask = Mask::none;
  float scale = 1.0f;
  std::int64_t window = 0;  // with `causal`: only the last `window` positions are seen; 0 is all
  bool sequence_first = false;
  bool has_sinks = false;
  bool operator==(const Attention&) const = default;
  void fields(auto&& f) const {
    f("mask", mask), f("scale", scale), f("window", window), f("sequence_first", sequence_first),
        f("has_sinks", has_sinks);
  }
};
std::string_view to_string(Attention::Mask mask) noexcept;

/// Causal attention of a batch of tokens over KV states that are addressed through block tables.
///   q f32 [T, Hq, D]; k, v states [R, Hkv, D] (f32, f16 or q8_0); block_table i32 [S, B];
///   seq i32 [T]: the token's row of the table, -1 for an idle token; pos i32 [T]; len i32 [S]:
///   valid positions of each sequence -> f32 [T, Hq, D].
/// Position p of sequence s is in row block_table[s][p / block_size] * block_size + p % block_size.
/// Token t sees positions p < len[s], p <= pos[t], and with a window p > pos[t] - window. An idle
/// token, or one that sees nothing, yields zeros.
struct Attend {
  static constexpr std::string_view kName = "attend";
  float scale = 1.0f;
  std::int64_t block_size = 32;
  std::int64_t window = 0;  // 0 is all
  bool operator==(const Attend&) const = default;
  void fields(auto&& f) const {
    f("scale", scale), f("block_size", block_size), f("window", window);
  }
};

/// A selective state space (Mamba): x and dt f32 [B, L, D], a f32 [D, N], b and c f32 [B, L, G, N],
/// [d f32 [D]], state f32 [B, D, N] -> y f32 [B, L, D] and the last state f32 [B, D, N]. For each
/// batch and feature i, which reads group g = i / (D/G) of b and c, from h = state[i], step by
/// step:
///   h[n] = exp(dt[t,i] * a[i,n]) * h[n] + (dt[t,i] * x[t,i]) * b[t,g,n]
///   y[t,i] = sum over n of h[n] * c[t,g,n], + d[i] * x[t,i]
/// D is a multiple of G > 0. dt is as used: softplus and its bias are applied before. Features are
/// independent of each other, and so are batches.
struct SelectiveScan {
  static constexpr std::string_view kName = "selective_scan";
  bool has_d = true;
  bool operator==(const SelectiveScan&) const = default;
  void fields(auto&& f) const { f("has_d", has_d); }
};

}  // namespace heddle
