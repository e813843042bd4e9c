#include "heddle/losses.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "array/ops_common.h"

namespace heddle::nn::losses {

namespace {

bool is_real(DType dtype) {
  return !is_block(dtype) && dtype != DType::complex64;
}

Array reduced(const Array& loss, Reduction reduction) {
  if (reduction == Reduction::mean) return mean(loss);
  return reduction == Reduction::sum ? sum(loss) : loss;
}

Array weighted(const Array& loss, const std::optional<Array>& weights, Reduction reduction) {
  require(!weights || (weights->shape() == loss.shape() && is_real(weights->dtype())),
          ErrorCode::invalid_argument, "the weights are {}; for this loss they must be real {}",
          weights ? to_string(weights->spec()) : "", loss.shape());
  return reduced(weights ? loss * *weights : loss, reduction);
}

void require_floating(const Array& a, const char* what) {
  require(is_floating(a.dtype()), ErrorCode::invalid_argument, "{} {}; they must be floating", what,
          a.spec());
}

/// Floating predictions, and real targets of the same shape.
void require_pair(const Array& predictions, const Array& targets) {
  require_floating(predictions, "the predictions are");
  require(predictions.shape() == targets.shape() && is_real(targets.dtype()),
          ErrorCode::invalid_argument,
          "the targets are {}; for predictions {} they must be real {}", targets.spec(),
          predictions.spec(), predictions.shape());
}

/// a's shape without `axis`
Shape shape_without(const Array& a, int axis) {
  Shape shape = a.shape();
  shape.erase(normalize_axis(axis, shape.size(), "axis"));
  return shape;
}

/// `values` at integer indices along `axis`, which is gone.
Array chosen(const Array& values, const Array& indices, int axis) {
  require(is_integer(indices.dtype()) && indices.shape() == shape_without(values, axis),
          ErrorCode::invalid_argument,
          "the targets are {}; for {} and axis {} they must be integers {}", indices.spec(),
          values.spec(), axis, shape_without(values, axis));
  return squeeze(take_along_axis(values, expand_dims(indices, axis), axis), axis);
}

void require_finite(const char* what, float value) {
  require(std::isfinite(value), ErrorCode::invalid_argument, "{} is {}; it must be finite", what,
          value);
}

void require_positive(const char* what, float value) {
  require(std::isfinite(value) && value > 0, ErrorCode::invalid_argument,
          "{} is {}; it must be positive", what, value);
}

/// A reduced loss of the differences of predictions and targets.
template <class Body>
Array of_differences(const char* name, const Arg& predictions, const Arg& targets,
                     Reduction reduction, const Body& body) {
  return within(name, predictions, [&] {
    require_pair(predictions, targets);
    return reduced(body(predictions - targets), reduction);
  });
}

}  // namespace

Array cross_entropy(const Arg& logits, const Arg& targets, const std::optional<Array>& weights,
                    int axis, float label_smoothing, Reduction reduction) {
  return within("cross_entropy", logits, [&] {
    require_floating(logits, "the logits are");
    require(label_smoothing >= 0 && label_smoothing < 1, ErrorCode::invalid_argument,
            "label_smoothing is {}; it must be in [0, 1)", label_smoothing);
    const bool probabilities = targets.ndim() == logits.ndim();
    if (probabilities) {
      require_pair(logits, targets);
      require_floating(targets, "the probabilities are");
    }
    Array score = probabilities ? sum(logits * targets, axis) : chosen(logits, targets, axis);
    if (label_smoothing > 0) {
      score = (1 - label_smoothing) * score + label_smoothing * mean(logits, axis);
    }
    return weighted(logsumexp(logits, axis) - score, weights, reduction);
  });
}

Array binary_cross_entropy(const Arg& inputs, const Arg& targets,
                           const std::optional<Array>& weights, bool with_logits,
                           Reduction reduction) {
  return within("binary_cross_entropy", inputs, [&] {
    require_pair(inputs, targets);
    if (with_logits) {
      const Array zero = zeros_like(inputs);
      return weighted(logaddexp(zero, inputs) - inputs * targets, weights, reduction);
    }
    const Array least = astype(Array(-100.0f), inputs.dtype());
    const Array yes = maximum(log(inputs), least), no = maximum(log1p(-inputs), least);
    return weighted(-(targets * yes + (1 - targets) * no), weights, reduction);
  });
}

Array l1_loss(const Arg& predictions, const Arg& targets, Reduction reduction) {
  return of_differences("l1_loss", predictions, targets, reduction,
                        [](const Array& d) { return abs(d); });
}

Array mse_loss(const Arg& predictions, const Arg& targets, Reduction reduction) {
  return of_differences("mse_loss", predictions, targets, reduction,
                        [](const Array& d) { return square(d); });
}

Array smooth_l1_loss(const Arg& predictions, const Arg& targets, float beta, Reduction reduction) {
  return of_differences("smooth_l1_loss", predictions, targets, reduction, [&](const Array& d) {
    require_positive("beta", beta);
    const Array size = abs(d);
    return where(size < beta, square(d) * (0.5f / beta), size - 0.5f * beta);
  });
}

Array huber_loss(const Arg& inputs, const Arg& targets, float delta, Reduction reduction) {
  return of_differences("huber_loss", inputs, targets, reduction, [&](const Array& d) {
    require_positive("delta", delta);
    const Array size = abs(d);
    return where(size <= delta, 0.5f * square(d), delta * (size - 0.5f * delta));
  });
}

Array log_cosh_loss(const Arg& inputs, const Arg& targets, Reduction reduction) {
  return of_differences("log_cosh_loss", inputs, targets, reduction, [](const Array& d) {
    return logaddexp(d, -d) - std::numbers::ln2_v<float>;
  });
}

Array nll_loss(const Arg& inputs, const Arg& targets, int axis, Reduction reduction) {
  return within("nll_loss", inputs, [&] {
    require_floating(inputs, "the inputs are");
    return reduced(-chosen(inputs, targets, axis), reduction);
  });
}

Array gaussian_nll_loss(const Arg& inputs, const Arg& targets, const Arg& vars, bool full,
                        float eps, Reduction reduction) {
  return within("gaussian_nll_loss", inputs, [&] {
    require_pair(inputs, targets);
    require(is_floating(vars.dtype()) && vars.shape() == inputs.shape(),
            ErrorCode::invalid_argument,
            "the variances are {}; for inputs {} they must be floating {}", vars.spec(),
            inputs.spec(), inputs.shape());
    require_positive("eps", eps);
    const Array variance = maximum(vars, eps);
    Array loss = 0.5f * (log(variance) + square(targets - inputs) / variance);
    if (full) loss = loss + 0.5f * std::log(2 * std::numbers::pi_v<float>);
    return reduced(loss, reduction);
  });
}

Array kl_div_loss(const Arg& inputs, const Arg& targets, int axis, Reduction reduction) {
  return within("kl_div_loss", inputs, [&] {
    require_pair(inputs, targets);
    require_floating(targets, "the targets are");
    return reduced(sum(exp(targets) * (targets - inputs), axis), reduction);
  });
}

Array hinge_loss(const Arg& inputs, const Arg& targets, Reduction reduction) {
  return within("hinge_loss", inputs, [&] {
    require_pair(inputs, targets);
    return reduced(relu(1 - inputs * targets), reduction);
  });
}

Array margin_ranking_loss(const Arg& inputs1, const Arg& inputs2, const Arg& targets, float margin,
                          Reduction reduction) {
  return within("margin_ranking_loss", inputs1, [&] {
    require_pair(inputs1, inputs2);
    require_pair(inputs1, targets);
    require_finite("margin", margin);
    return reduced(relu(margin - targets * (inputs1 - inputs2)), reduction);
  });
}

Array triplet_loss(const Arg& anchors, const Arg& positives, const Arg& negatives, int axis,
                   float p, float margin, float eps, Reduction reduction) {
  return within("triplet_loss", anchors, [&] {
    require_pair(anchors, positives);
    require_pair(anchors, negatives);
    require_positive("p", p);
    require_finite("margin", margin);
    require(std::isfinite(eps) && eps >= 0, ErrorCode::invalid_argument,
            "eps is {}; it must be finite and not negative", eps);
    const auto distance = [&](const Array& other) {
      return power(sum(power(abs(anchors - other), p), axis) + eps, 1 / p);
    };
    return reduced(relu(distance(positives) - distance(negatives) + margin), reduction);
  });
}

Array cosine_similarity_loss(const Arg& x1, const Arg& x2, int axis, float eps,
                             Reduction reduction) {
  return within("cosine_similarity_loss", x1, [&] {
    require_pair(x1, x2);
    require_positive("eps", eps);
    const Array norms = sqrt(sum(square(x1), axis)) * sqrt(sum(square(x2), axis));
    return reduced(sum(x1 * x2, axis) / maximum(norms, eps), reduction);
  });
}

}  // namespace heddle::nn::losses
