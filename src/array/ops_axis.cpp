// Along an axis: scans, padding, turning round.
#include "array/ops_common.h"

namespace heddle {

namespace {

/// All elements as one line.
Array as_line(const Array& a) {
  return reshape(a, {a.size()});
}

// ---- Scans

const char* name_of(ScanKind kind) {
  switch (kind) {
    case ScanKind::sum:
      return "cumsum";
    case ScanKind::prod:
      return "cumprod";
    case ScanKind::max:
      return "cummax";
    case ScanKind::min:
      return "cummin";
    case ScanKind::logaddexp:
      return "logcumsumexp";
  }
  return "scan";
}

Array scan(ScanKind kind, const Arg& a, std::optional<int> axis, bool reverse, bool inclusive) {
  const char* function = name_of(kind);
  return within(function, a, [&]() -> Array {
    const Array x = kind == ScanKind::logaddexp ? astype(a, at_least_float(a.dtype())) : a.array();
    if (!axis) return heddle::apply(Scan{kind, 0, reverse, !inclusive}, {as_line(x)});
    const std::size_t at = normalize_axis(*axis, a.ndim(), function);
    return heddle::apply(Scan{kind, static_cast<std::int64_t>(at), reverse, !inclusive}, {x});
  });
}

}  // namespace

Array cumsum(const Arg& a, bool reverse, bool inclusive) {
  return scan(ScanKind::sum, a, std::nullopt, reverse, inclusive);
}
Array cumsum(const Arg& a, int axis, bool reverse, bool inclusive) {
  return scan(ScanKind::sum, a, axis, reverse, inclusive);
}
Array cumprod(const Arg& a, bool reverse, bool inclusive) {
  return scan(ScanKind::prod, a, std::nullopt, reverse, inclusive);
}
Array cumprod(const Arg& a, int axis, bool reverse, bool inclusive) {
  return scan(ScanKind::prod, a, axis, reverse, inclusive);
}
Array cummax(const Arg& a, bool reverse, bool inclusive) {
  return scan(ScanKind::max, a, std::nullopt, reverse, inclusive);
}
Array cummax(const Arg& a, int axis, bool reverse, bool inclusive) {
  return scan(ScanKind::max, a, axis, reverse, inclusive);
}
Array cummin(const Arg& a, bool reverse, bool inclusive) {
  return scan(ScanKind::min, a, std::nullopt, reverse, inclusive);
}
Array cummin(const Arg& a, int axis, bool reverse, bool inclusive) {
  return scan(ScanKind::min, a, axis, reverse, inclusive);
}
Array logcumsumexp(const Arg& a, bool reverse, bool inclusive) {
  return scan(ScanKind::logaddexp, a, std::nullopt, reverse, inclusive);
}
Array logcumsumexp(const Arg& a, int axis, bool reverse, bool inclusive) {
  return scan(ScanKind::logaddexp, a, axis, reverse, inclusive);
}

// ---- Padding and turning round

Array pad(const Arg& a, const Dims& axes, const Shape& low_pad_size, const Shape& high_pad_size,
          const Arg& pad_value, const std::string& mode) {
  return within("pad", a, [&]() -> Array {
    require(mode == "constant" || mode == "edge", ErrorCode::invalid_argument,
            "pad: mode \"{}\"; it must be constant or edge", mode);
    require(low_pad_size.size() == axes.size() && high_pad_size.size() == axes.size(),
            ErrorCode::invalid_argument, "pad: {} before and {} behind do not fit axes {}",
            low_pad_size, high_pad_size, axes);
    require(!is_block(a.dtype()), ErrorCode::invalid_argument,
            "pad: {} is of a block type; cast it to a plain type first", a.spec());
    sorted_axes(axes, a.ndim(), "pad");  // refuses those that are named twice
    Pad op{mode == "edge" ? Pad::Mode::edge : Pad::Mode::constant, Dims(a.ndim(), 0),
           Dims(a.ndim(), 0)};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t at = normalize_axis(axes[i], a.ndim(), "pad");
      op.low[at] = low_pad_size[i];
      op.high[at] = high_pad_size[i];
    }
    if (op.low == Dims(a.ndim(), 0) && op.high == op.low) return a;
    if (op.mode == Pad::Mode::edge) return heddle::apply(op, {a});
    return heddle::apply(op, {a, astype(pad_value, a.dtype())});
  });
}

Array pad(const Arg& a, const std::vector<std::pair<int, int>>& pad_width, const Arg& pad_value,
          const std::string& mode) {
  return within("pad", a, [&]() -> Array {
    require(pad_width.size() == a.ndim(), ErrorCode::invalid_argument,
            "pad: {} widths for the {} dimensions of {}", pad_width.size(), a.ndim(), a.spec());
    Dims axes, low, high;
    for (const auto& [before, behind] : pad_width) {
      axes.push_back(static_cast<std::int64_t>(axes.size()));
      low.push_back(before);
      high.push_back(behind);
    }
    return pad(a, axes, low, high, pad_value, mode);
  });
}

Array pad(const Arg& a, const std::pair<int, int>& pad_width, const Arg& pad_value,
          const std::string& mode) {
  return pad(a, std::vector<std::pair<int, int>>(a.ndim(), pad_width), pad_value, mode);
}

Array pad(const Arg& a, int pad_width, const Arg& pad_value, const std::string& mode) {
  return pad(a, std::pair(pad_width, pad_width), pad_value, mode);
}

Array flip(const Arg& a, const Dims& axes) {
  return within("flip", a, [&]() -> Array {
    Slice op{Dims(a.ndim(), 0), a.shape(), Dims(a.ndim(), 1)};
    for (const std::int64_t axis : sorted_axes(axes, a.ndim(), "flip")) {
      op.start[axis] = a.shape()[axis] - 1;
      op.stop[axis] = op.step[axis] = -1;
    }
    if (axes.empty()) return a;
    return heddle::apply(op, {a});
  });
}

Array flip(const Arg& a, int axis) {
  return flip(a, Dims{axis});
}

Array flip(const Arg& a) {
  Dims axes;
  for (std::size_t i = 0; i < a.ndim(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  return flip(a, axes);
}

}  // namespace heddle
