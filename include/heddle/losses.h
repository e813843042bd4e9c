// Losses. Names, arguments and defaults follow mlx.nn.losses.
//
// `weights` have the loss's shape before it is reduced, and multiply it. A mean divides by the
// number of losses, whatever the weights. All throw invalid_argument, naming the function and the
// shapes or dtypes at fault, when called.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/array.h"

namespace heddle::nn::losses {

enum class Reduction : std::uint8_t { none, mean, sum };

/// -log softmax(logits) at `targets`: integer indices, of logits' shape without `axis`, or
/// probabilities of logits' shape that sum to 1. Indices that lie outside fail when evaluated.
/// `label_smoothing` is the share, in [0, 1), of the uniform distribution in the target.
Array cross_entropy(const Arg& logits, const Arg& targets,
                    const std::optional<Array>& weights = std::nullopt, int axis = -1,
                    float label_smoothing = 0.0f, Reduction reduction = Reduction::none);
/// Of inputs that are logits, or else probabilities, whose logarithms are not below -100.
Array binary_cross_entropy(const Arg& inputs, const Arg& targets,
                           const std::optional<Array>& weights = std::nullopt,
                           bool with_logits = true, Reduction reduction = Reduction::mean);

Array l1_loss(const Arg& predictions, const Arg& targets, Reduction reduction = Reduction::mean);
Array mse_loss(const Arg& predictions, const Arg& targets, Reduction reduction = Reduction::mean);
/// d^2 / (2 beta) of differences d within `beta`, |d| - beta / 2 of others.
Array smooth_l1_loss(const Arg& predictions, const Arg& targets, float beta = 1.0f,
                     Reduction reduction = Reduction::mean);
/// d^2 / 2 of differences d within `delta`, delta (|d| - delta / 2) of others.
Array huber_loss(const Arg& inputs, const Arg& targets, float delta = 1.0f,
                 Reduction reduction = Reduction::none);
/// log cosh of differences.
Array log_cosh_loss(const Arg& inputs, const Arg& targets, Reduction reduction = Reduction::none);

/// -inputs at the indices `targets`, which have inputs' shape without `axis`; inputs are
/// logarithms of probabilities.
Array nll_loss(const Arg& inputs, const Arg& targets, int axis = -1,
               Reduction reduction = Reduction::none);
/// (log v + (x - t)^2 / v) / 2 with the variances v not below `eps`; `full` adds log(2 pi) / 2.
Array gaussian_nll_loss(const Arg& inputs, const Arg& targets, const Arg& vars, bool full = false,
                        float eps = 1e-6f, Reduction reduction = Reduction::mean);
/// Sums along `axis` of e^targets (targets - inputs), both logarithms of probabilities.
Array kl_div_loss(const Arg& inputs, const Arg& targets, int axis = -1,
                  Reduction reduction = Reduction::none);

/// max(0, 1 - inputs * targets), with targets -1 or 1.
Array hinge_loss(const Arg& inputs, const Arg& targets, Reduction reduction = Reduction::none);
/// max(0, margin - targets * (inputs1 - inputs2)), with targets -1 or 1.
Array margin_ranking_loss(const Arg& inputs1, const Arg& inputs2, const Arg& targets,
                          float margin = 0.0f, Reduction reduction = Reduction::none);
/// max(0, |anchors - positives| - |anchors - negatives| + margin), with p-norms along `axis`, in
/// which `eps` is added to the sum of powers.
Array triplet_loss(const Arg& anchors, const Arg& positives, const Arg& negatives, int axis = -1,
                   float p = 2.0f, float margin = 1.0f, float eps = 1e-6f,
                   Reduction reduction = Reduction::none);
/// The cosine of the angle between x1 and x2 along `axis`; the product of their norms counts as
/// `eps` where it is smaller.
Array cosine_similarity_loss(const Arg& x1, const Arg& x2, int axis = 1, float eps = 1e-8f,
                             Reduction reduction = Reduction::none);

}  // namespace heddle::nn::losses
