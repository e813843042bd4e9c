// Functions of language models, and MLX's `fast`. See ops.h for what all functions have in common.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "heddle/array.h"

namespace heddle {

Array gated_multiply(const Arg& gate, const Arg& up, UnaryKind activation = UnaryKind::silu);
/// x [T, H, D] turned by the angles at positions [T].
Array rope(const Arg& x, const Arg& positions, const RopeAngles& angles,
           const std::optional<Array>& factors = std::nullopt);
/// x [T, H, D] turned by rows of tables cos, sin [P, dims/2]: row index[t], or row t without
/// `index`.
Array rope_table(const Arg& x, const Arg& cos, const Arg& sin, const std::optional<Array>& index,
                 RopeStyle style = RopeStyle::split_half);
/// Each head of x [T, H, D] normalised as rms_norm does it, with a weight [D], then turned by the
/// angles at positions [T]: qwen3's q and k.
Array norm_rope(const Arg& x, const std::optional<Array>& weight, float eps, const Arg& positions,
                const RopeAngles& angles, const std::optional<Array>& factors = std::nullopt);
/// The state's next version, with x[t] in row rows[t]; negative rows are left out, others beyond
/// the state fail when evaluated. Takes the place of `state`, in its memory when this was the only
/// handle: pass it with std::move.
Array write_rows(Array state, const Arg& x, const Arg& rows);
/// write_rows(state, norm_rope(x, ...), rows) in one step.
Array norm_rope_write_rows(Array state, const Arg& x, const Arg& rows,
                           const std::optional<Array>& weight, float eps, const Arg& positions,
                           const RopeAngles& angles,
                           const std::optional<Array>& factors = std::nullopt);
/// Softmax over the last axis of scores [..., Q, K], where row q sees columns up to K - Q + q: the
/// others give 0, and so does a row that sees nothing. Integers become f32.
Array causal_softmax(const Arg& a);
/// See the op Attend. Positions, sequences and rows outside the table and the states fail when
/// evaluated.
Array attend(const Arg& q, const Arg& k, const Arg& v, const Arg& block_table, const Arg& seq,
             const Arg& pos, const Arg& len, const Attend& params);

/// A selective state space (Mamba), in f32: x and dt [B, L, D], a [D, N], b and c [B, L, N] or in
/// groups [B, L, G, N], d [D], state [B, D, N]. Gives y [B, L, D] and the state after the last
/// step. See the op SelectiveScan.
std::pair<Array, Array> selective_scan(const Arg& x, const Arg& dt, const Arg& a, const Arg& b,
                                       const Arg& c, const std::optional<Array>& d,
                                       const Arg& state);

namespace fast {
/// Over the last axis. The result is of the type in which x, weight and bias meet, as in MLX.
Array rms_norm(const Arg& x, const std::optional<Array>& weight, float eps,
               const std::optional<Array>& bias = std::nullopt);
Array layer_norm(const Arg& x, const std::optional<Array>& weight, const std::optional<Array>& bias,
                 float eps);
/// layer_norm over `axis`, which weight and bias lie along.
Array channel_norm(const Arg& x, int axis, const std::optional<Array>& weight,
                   const std::optional<Array>& bias, float eps);
/// x [N, ..., C]: for each n, `groups` groups of neighbouring channels are normalised, over all
/// positions.
Array group_norm(const Arg& x, int groups, const std::optional<Array>& weight,
                 const std::optional<Array>& bias, float eps);
/// x [B, ..., T, D] (or [T, D]) turned at positions offset, offset + 1, ... along T. `traditional`
/// pairs features (2i, 2i+1), else (i, i + dims/2). Pair i turns by position * scale /
/// base^(2i/dims) or, given `freqs` [dims/2] instead of `base`, by position * scale / freqs[i]
/// (MLX's meaning: periods, not frequencies).
Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           int offset, const std::optional<Array>& freqs = std::nullopt);
/// The same with an integer array of offsets: one for all, or one for each of B.
Array rope(const Arg& x, int dims, bool traditional, std::optional<float> base, float scale,
           const Array& offset, const std::optional<Array>& freqs = std::nullopt);
/// q [B, Hq, Sq, D], k and v [B, Hkv, Sk, D]. Without `scale`, D^-0.5. `mask_mode` is "", "causal"
/// (query i sees keys up to Sk - Sq + i) or, with a mask, "array"; `mask` broadcasts to
/// [B, Hq, Sq, Sk] and is boolean (true is seen) or additive. `sinks` [Hq] are a score more for
/// each head, which has no value. What sees nothing gives zeros. The mask's and the sinks' types
/// must promote to that in which q, k and v meet.
Array scaled_dot_product_attention(const Arg& q, const Arg& k, const Arg& v,
                                   std::optional<float> scale = std::nullopt,
                                   const std::string& mask_mode = "",
                                   const std::optional<Array>& mask = std::nullopt,
                                   const std::optional<Array>& sinks = std::nullopt);
}  // namespace fast

/// As scaled_dot_product_attention, with every choice that the op has.
Array attention(const Arg& q, const Arg& k, const Arg& v, const Attention& params,
                const std::optional<Array>& mask = std::nullopt,
                const std::optional<Array>& sinks = std::nullopt);

}  // namespace heddle
