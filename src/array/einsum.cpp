// Sums of products by index letters.
#include "heddle/einsum.h"

#include <algorithm>

#include "array/einsum_path.h"
#include "array/ops_common.h"

namespace heddle {

namespace {

/// An operand and its axes' letters.
struct Term {
  Array array;
  Letters letters;

  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
  std::int64_t extent(char letter) const { return array.shape()[letters.find(letter)]; }
};

/// The diagonal of axes that share a letter.
Term with_letters_once(const Term& term) {
  const Dims whole = contiguous_strides(term.array.shape());
  Letters letters;
  Shape shape;
  Dims strides;
  for (std::size_t axis = 0; axis < term.letters.size(); ++axis) {
    const std::size_t before = letters.find(term.letters[axis]);
    if (before != std::string::npos) {
      strides[before] += whole[axis];
      continue;
    }
    letters += term.letters[axis];
    shape.push_back(term.array.shape()[axis]);
    strides.push_back(whole[axis]);
  }
  if (letters == term.letters) return term;
  if (elements(shape) == 0) return {zeros(shape, term.array.dtype()), letters};
  return {as_strided(term.array, shape, strides, 0), letters};
}

/// Summed over letters that neither the others nor the result have.
Term with_needed_letters(const Term& term, const Letters& needed) {
  Dims axes;
  Letters kept;
  for (std::size_t axis = 0; axis < term.letters.size(); ++axis) {
    if (needed.find(term.letters[axis]) == std::string::npos) {
      axes.push_back(static_cast<std::int64_t>(axis));
    } else {
      kept += term.letters[axis];
    }
  }
  return axes.empty() ? term : Term{sum(term.array, axes), kept};
}

/// The array with axes in the order of `letters`, all of which it has.
Array in_order(const Term& term, const Letters& letters) {
  Dims axes;
  for (const char letter : letters) {
    axes.push_back(static_cast<std::int64_t>(term.letters.find(letter)));
  }
  return transpose(term.array, axes);
}

/// Letters of a product of matrices, by their part in it.
struct Roles {
  Letters batch, first, second, summed;
};
Roles roles_of(const Term& a, const Term& b, const Letters& output) {
  Roles roles;
  for (const char letter : a.letters) {
    const bool kept = output.find(letter) != std::string::npos;
    (!kept ? roles.summed : b.has(letter) ? roles.batch : roles.first) += letter;
  }
  for (const char letter : b.letters) {
    if (!a.has(letter)) roles.second += letter;
  }
  return roles;
}

/// [batch, rows, columns] of the letters' axes, each joined into one.
Array as_matrices(const Term& term, const Letters& batch, const Letters& rows,
                  const Letters& columns, const Term& other) {
  const Letters order = batch + rows + columns;
  const Array array = in_order(term, order);
  Shape wide;
  for (const char letter : order) {
    wide.push_back(other.has(letter) ? std::max(term.extent(letter), other.extent(letter))
                                     : term.extent(letter));
    // An extent of 1 stretches to any other, 0 too.
    if (other.has(letter) && std::min(term.extent(letter), other.extent(letter)) == 0) {
      wide[wide.size() - 1] = 0;
    }
  }
  Shape joined(3, 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t part = i < batch.size() ? 0 : i < batch.size() + rows.size() ? 1 : 2;
    joined[part] *= wide[i];
  }
  return reshape(broadcast_to(array, wide), joined);
}

Term multiplied_as_matrices(const Term& a, const Term& b, const Roles& roles) {
  const DType dtype = promote_types(a.array.dtype(), b.array.dtype());
  const Array left = as_matrices(a, roles.batch, roles.first, roles.summed, b);
  const Array right = as_matrices(b, roles.batch, roles.summed, roles.second, a);
  const Array product = matmul(astype(left, dtype), astype(right, dtype));
  Term result{product, roles.batch + roles.first + roles.second};
  Shape shape;
  for (const char letter : result.letters) {
    const std::int64_t x = a.has(letter) ? a.extent(letter) : 1;
    const std::int64_t y = b.has(letter) ? b.extent(letter) : 1;
    shape.push_back(x == 1 ? y : x);
  }
  result.array = reshape(product, shape);
  return result;
}

/// Element by element over all letters, then summed.
Term multiplied_element_wise(const std::vector<Term>& terms, const Letters& output) {
  Letters all = output;
  for (const Term& term : terms) {
    for (const char letter : term.letters) {
      if (all.find(letter) == std::string::npos) all += letter;
    }
  }
  require(all.size() <= kMaxRank, ErrorCode::invalid_argument,
          "einsum: a product of {} operands has {} dimensions; at most {} are supported",
          terms.size(), all.size(), kMaxRank);
  std::optional<Array> product;
  for (const Term& term : terms) {
    Letters own;
    Shape shape;
    for (const char letter : all) {
      if (term.has(letter)) own += letter;
      shape.push_back(term.has(letter) ? term.extent(letter) : 1);
    }
    const Array aligned = reshape(in_order(term, own), shape);
    product = product ? multiply(*product, aligned) : aligned;
  }
  return with_needed_letters({*product, all}, output);
}

bool takes_matrices(const std::vector<Term>& terms, const Letters& output) {
  if (terms.size() != 2) return false;
  const DType dtype = promote_types(terms[0].array.dtype(), terms[1].array.dtype());
  if (!is_floating(dtype) && dtype != DType::complex64) return false;
  return !roles_of(terms[0], terms[1], output).summed.empty();
}

Term multiplied(std::vector<Term> terms, const Letters& output) {
  for (Term& term : terms) term = with_letters_once(term);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Letters needed = output;
    for (std::size_t j = 0; j < terms.size(); ++j) {
      if (j != i) needed += terms[j].letters;
    }
    terms[i] = with_needed_letters(terms[i], needed);
  }
  const Term product =
      takes_matrices(terms, output)
          ? multiplied_as_matrices(terms[0], terms[1], roles_of(terms[0], terms[1], output))
          : multiplied_element_wise(terms, output);
  return {in_order(product, output), output};
}

}  // namespace

Array einsum(const std::string& subscripts, const std::vector<Array>& operands,
             std::source_location where) {
  return within("einsum", where, [&]() -> Array {
    const EinsumPlan plan = plan_einsum("einsum", subscripts, operands);
    std::vector<Array> list = operands;
    for (const EinsumStep& step : plan.steps) {
      std::vector<Term> terms;
      for (std::size_t i = 0; i < step.positions.size(); ++i) {
        terms.push_back({list[static_cast<std::size_t>(step.positions[i])], step.inputs[i]});
      }
      list.push_back(multiplied(std::move(terms), step.output).array);
      for (std::size_t i = step.positions.size(); i-- > 0;) {
        list.erase(list.begin() + step.positions[i]);
      }
    }
    return list.front();
  });
}

}  // namespace heddle
