// Sums of products by index letters.
#pragma once

#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "heddle/array.h"

namespace heddle {

/// "ij,jk->ik": a letter for each axis of each operand, and those of the result; letters that it
/// lacks are summed over. A letter twice in one operand takes its diagonal. Without "->" the result
/// has the letters that come once, in alphabetical order. "..." stands for axes without letters,
/// which broadcast and, without "->", come first. Extents of 1 broadcast. Operands are multiplied
/// two at a time, in einsum_path's order, as matrices where something is summed.
Array einsum(const std::string& subscripts, const std::vector<Array>& operands,
             std::source_location where = std::source_location::current());
/// The positions of the operands that are multiplied first, and so on; they leave the list and
/// their product goes to its end. And a description with counts of operations. At each step the
/// pair goes first that frees the most elements.
std::pair<std::vector<std::vector<int>>, std::string> einsum_path(
    const std::string& subscripts, const std::vector<Array>& operands,
    std::source_location where = std::source_location::current());

}  // namespace heddle
