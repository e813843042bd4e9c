// Functions of indices and of order: operands that suit them, and calls that none makes right.
#include <tuple>

#include "bad_input_walk.h"

namespace heddle::test {

namespace {

template <class F>
void add(std::vector<Walked>& all, const char* name, const char* operands, F f,
         bool by_data = false) {
  all.push_back({name, operands, [f](const Arrays& in) { return Arrays{f(in)}; }, by_data});
}
template <class F>
void add_by_data(std::vector<Walked>& all, const char* name, const char* operands, F f) {
  add(all, name, operands, f, true);
}

// ---- Operands that suit

void add_order(std::vector<Walked>& all) {
  add(all, "argmax", "f32[2, 256]", [](const Arrays& in) { return argmax(in[0]); });
  add(all, "argmax", "f32[2, 3]", [](const Arrays& in) { return argmax(in[0], 0, true); });
  add(all, "argmin", "f32[2, 256]", [](const Arrays& in) { return argmin(in[0], true); });
  add(all, "argmin", "f32[2, 3]", [](const Arrays& in) { return argmin(in[0], -1); });
  add(all, "topk", "f32[2, 256]", [](const Arrays& in) { return topk(in[0], 3); });
  add(all, "topk", "f32[2, 3]", [](const Arrays& in) { return topk(in[0], 2, 0); });
  all.push_back({"topk_with_indices", "f32[2, 256]", [](const Arrays& in) {
                   const auto [values, indices] = topk_with_indices(in[0], 2);
                   return Arrays{values, indices};
                 }});
  add(all, "sort", "f32[2, 256]", [](const Arrays& in) { return sort(in[0]); });
  add(all, "sort", "f32[2, 3]", [](const Arrays& in) { return sort(in[0], 0); });
  add(all, "argsort", "f32[2, 256]", [](const Arrays& in) { return argsort(in[0]); });
  add(all, "argsort", "f32[2, 3]", [](const Arrays& in) { return argsort(in[0], -1); });
  add(all, "partition", "f32[2, 256]", [](const Arrays& in) { return partition(in[0], 0); });
  add(all, "partition", "f32[2, 3]", [](const Arrays& in) { return partition(in[0], -1, 1); });
  add(all, "argpartition", "f32[2, 256]", [](const Arrays& in) { return argpartition(in[0], 0); });
  add(all, "argpartition", "f32[2, 3]", [](const Arrays& in) { return argpartition(in[0], 0, 0); });
  add(all, "searchsorted", "f32[256], f32[2, 3]",
      [](const Arrays& in) { return searchsorted(in[0], in[1]); });
  add(all, "sorted_offsets", "i32[256]", [](const Arrays& in) { return sorted_offsets(in[0], 9); });
}

void add_choice(std::vector<Walked>& all) {
  add_by_data(all, "take", "f32[2, 256], i32[3]",
              [](const Arrays& in) { return take(in[0], in[1], 0); });
  add_by_data(all, "take", "f32[2, 3], u8[2, 2]",
              [](const Arrays& in) { return take(in[0], in[1], -1); });
  add_by_data(all, "take", "f32[2, 3], i64[2, 2]",
              [](const Arrays& in) { return take(in[0], in[1]); });
  add(all, "take", "f32[2, 256]", [](const Arrays& in) { return take(in[0], 0, 0); });
  add(all, "take", "f32[2, 3]", [](const Arrays& in) { return take(in[0], 0); });
  add_by_data(all, "take_along_axis", "f32[2, 256], i32[2, 3]",
              [](const Arrays& in) { return take_along_axis(in[0], in[1], 1); });
  add_by_data(all, "put_along_axis", "f32[2, 256], i32[1, 3], f32[2, 3]",
              [](const Arrays& in) { return put_along_axis(in[0], in[1], in[2], 1); });
  add_by_data(all, "scatter_add_axis", "f32[2, 256], u8[3, 256], f32[256]",
              [](const Arrays& in) { return scatter_add_axis(in[0], in[1], in[2], 0); });
  add_by_data(all, "scatter_axis", "f32[4], i64[3], f32[]", [](const Arrays& in) {
    return scatter_axis(in[0], in[1], in[2], -1, ScatterKind::max);
  });
}

using Scatter = Array (*)(const Arg&, const Arg&, const Arg&, int);
using ScatterSeveral = Array (*)(const Arg&, const std::vector<Array>&, const Arg&, const Dims&);

void add_slices(std::vector<Walked>& all) {
  add_by_data(all, "gather", "f32[2, 256], i32[3]", [](const Arrays& in) {
    return gather(in[0], in[1], 0, {1, 2});
  });
  add_by_data(all, "gather", "f32[4, 3], u8[2, 1], i64[3]", [](const Arrays& in) {
    return gather(in[0], {in[1], in[2]}, {1, 0}, {2, 1});
  });
  const std::tuple<const char*, Scatter, ScatterSeveral> scatters[] = {
      {"scatter", scatter, scatter},
      {"scatter_add", scatter_add, scatter_add},
      {"scatter_prod", scatter_prod, scatter_prod},
      {"scatter_max", scatter_max, scatter_max},
      {"scatter_min", scatter_min, scatter_min}};
  for (const auto& [name, one, several] : scatters) {
    add_by_data(all, name, "f32[2, 256], i32[3], f32[3, 1, 256]",
                [f = one](const Arrays& in) { return f(in[0], in[1], in[2], 0); });
    add_by_data(all, name, "f32[4, 3], u8[2, 1], i64[3], f32[2, 3, 1, 2]",
                [f = several](const Arrays& in) {
                  return f(in[0], {in[1], in[2]}, in[3], {0, 1});
                });
  }
  add_by_data(all, "masked_scatter", "f32[2, 256], bool[2, 256], f32[512]",
              [](const Arrays& in) { return masked_scatter(in[0], in[1], in[2]); });
  add_by_data(all, "masked_scatter", "f32[2, 3], bool[2], f32[2, 3]",
              [](const Arrays& in) { return masked_scatter(in[0], in[1], in[2]); });
  add_by_data(all, "slice", "f32[2, 256], i32[2]", [](const Arrays& in) {
    return slice(in[0], in[1], {0, 1}, {1, 2});
  });
  add_by_data(all, "slice_update", "f32[2, 256], f32[1, 32], i64[2]", [](const Arrays& in) {
    return slice_update(in[0], in[1], in[2], {0, 1});
  });
}

using Combine = Array (*)(const Arg&, const Arg&, const Dims&, const Dims&);
using CombineStrided = Array (*)(const Arg&, const Arg&, const Dims&, const Dims&, const Dims&);

void add_updates(std::vector<Walked>& all) {
  const std::tuple<const char*, Combine, CombineStrided> updates[] = {
      {"slice_update_add", slice_update_add, slice_update_add},
      {"slice_update_prod", slice_update_prod, slice_update_prod},
      {"slice_update_max", slice_update_max, slice_update_max},
      {"slice_update_min", slice_update_min, slice_update_min}};
  for (const auto& [name, plain, strided] : updates) {
    add(all, name, "f32[2, 256], f32[256]", [f = plain](const Arrays& in) {
      return f(in[0], in[1], {1, 0}, {2, 256});
    });
    add(all, name, "f32[2, 3], f32[2, 1]", [f = strided](const Arrays& in) {
      return f(in[0], in[1], {1, 2}, {-9, -9}, {-1, -2});
    });
  }
}

// ---- Calls that nothing makes right

void refuse_order(std::vector<Refused>& all) {
  const Array complex = zeros({2}, DType::complex64);
  const auto refuse = [&](const char* function, std::vector<std::string> parts,
                          std::function<void()> call) {
    all.push_back({function, std::move(parts), std::move(call)});
  };
  refuse("argmax", {"complex64[2]"}, [=] { argmax(complex); });
  refuse("argmax", {"nothing", "f32[0]"}, [] { argmax(floats({0})); });
  refuse("argmin", {"nothing", "f32[2, 0]"}, [] { argmin(floats({2, 0}), 1); });
  refuse("topk", {"4 largest", "f32[3]"}, [] { topk(floats({3}), 4); });
  refuse("topk", {"-1 largest"}, [] { topk(floats({3}), -1, 0); });
  refuse("topk_with_indices", {"3 largest"}, [] { topk_with_indices(floats({2, 3}), 3, 0); });
  refuse("topk_with_indices", {"q8_0"}, [] { topk_with_indices(blocks(), 3); });
  refuse("sort", {"q8_0"}, [] { sort(blocks(), 0); });
  refuse("argsort", {"q8_0"}, [] { argsort(blocks()); });
  refuse("partition", {"kth 3", "[-3, 3)", "f32[3]"}, [] { partition(floats({3}), 3); });
  refuse("partition", {"kth 0", "f32[0]"}, [] { partition(floats({0}), 0); });
  refuse("argpartition", {"kth -3", "[-2, 2)"}, [] { argpartition(floats({2, 3}), -3, 0); });
  refuse("searchsorted", {"side \"up\""}, [] { searchsorted(floats({3}), 1, "up"); });
  refuse("searchsorted", {"f32[2, 3]"}, [] { searchsorted(floats({2, 3}), 1); });
  refuse("sorted_offsets", {"f32[3]"}, [] { sorted_offsets(floats({3}), 1); });
  refuse("sorted_offsets", {"-1 groups"}, [] { sorted_offsets(ints({3}), -1); });
}

void refuse_choice(std::vector<Refused>& all) {
  const Array complex = zeros({2}, DType::complex64);
  const auto refuse = [&](const char* function, std::vector<std::string> parts,
                          std::function<void()> call) {
    all.push_back({function, std::move(parts), std::move(call)});
  };
  refuse("take", {"f32[3]", "integers"}, [] { take(floats({2}), floats({3}), 0); });
  refuse("take", {"bool[3]", "integers"}, [] {
    take(floats({2}), zeros_of({DType::bool_, {3}}), 0);
  });
  refuse("take", {"0 dimensions"}, [] { take(floats({}), Array(0), 0); });
  refuse("take", {"f32[0, 2]"}, [] { take(floats({0, 2}), ints({1})); });
  refuse("take", {"index 2", "[-2, 2)"}, [] { take(floats({2}), 2, 0); });
  refuse("take", {"index -7", "[-6, 6)"}, [] { take(floats({2, 3}), -7); });
  refuse("take_along_axis", {"f32[3]", "integers"},
         [] { take_along_axis(floats({3}), floats({3}), 0); });
  refuse("take_along_axis", {"i32[2]", "rank"}, [] {
    take_along_axis(floats({3, 2}), ints({2}), 0);
  });
  refuse("take_along_axis", {"i32[2, 2]", "f32[3, 2]", "axis 1"}, [] {
    take_along_axis(floats({3, 2}), ints({2, 2}), 1);
  });
  refuse("put_along_axis", {"reach beyond f32[1, 2]"}, [] {
    put_along_axis(floats({1, 2}), ints({3, 2}), 1, 1);
  });
  refuse("put_along_axis", {"f32[4]", "[3]"},
         [] { put_along_axis(floats({3}), ints({3}), floats({4}), 0); });
  refuse("put_along_axis", {"q8_0"}, [] { put_along_axis(blocks(), ints({2, 1}), 1, 1); });
  refuse("scatter_add_axis", {"f32[2, 64]", "[64]"},
         [] { scatter_add_axis(floats({64}), ints({64}), blocks(), 0); });
  refuse("scatter_axis", {"complex64[2]"},
         [=] { scatter_axis(complex, ints({1}), 1, 0, ScatterKind::min); });
}

void refuse_slices(std::vector<Refused>& all) {
  const Array complex = zeros({2}, DType::complex64);
  const auto refuse = [&](const char* function, std::vector<std::string> parts,
                          std::function<void()> call) {
    all.push_back({function, std::move(parts), std::move(call)});
  };
  refuse("gather", {"1 arrays of indices", "[0, 1]"}, [] {
    gather(floats({2, 3}), {ints({1})}, Dims{0, 1}, {1, 1});
  });
  refuse("gather", {"[1]", "f32[2, 3]"}, [] { gather(floats({2, 3}), ints({1}), 0, {1}); });
  refuse("gather", {"[3, 1]", "f32[2, 3]"}, [] { gather(floats({2, 3}), ints({1}), 0, {3, 1}); });
  refuse("gather", {"i32[2]", "[3]"}, [] {
    gather(floats({2, 3}), std::vector<Array>{ints({3}), ints({2})}, Dims{0, 1}, {1, 1});
  });
  refuse("gather", {"bool[2]"}, [] { gather(floats({2}), zeros_of({DType::bool_, {2}}), 0, {1}); });
  refuse("scatter", {"f32[2]", "f32[3]"}, [] { scatter(floats({3}), ints({2}), floats({2}), 0); });
  refuse("scatter_add", {"f32[2, 4]", "f32[3]"}, [] {
    scatter_add(floats({3}), ints({2}), floats({2, 4}), 0);
  });
  refuse("scatter_prod", {"q8_0"}, [] {
    scatter_prod(blocks(), ints({2}), floats({2, 1, 32}), 0);
  });
  refuse("scatter_max", {"complex64[2]"}, [=] {
    scatter_max(complex, ints({1}), floats({1, 1}), 0);
  });
  refuse("scatter_min", {"f32[2]", "integers"}, [] {
    scatter_min(floats({3}), floats({2}), floats({2, 1}), 0);
  });
  refuse("masked_scatter", {"bool[3]", "f32[2, 3]"}, [] {
    masked_scatter(floats({2, 3}), zeros({3}, DType::bool_), 1);
  });
  refuse("masked_scatter", {"i32[2]", "bool"}, [] {
    masked_scatter(floats({2, 3}), ints({2}), 1);
  });
  refuse("masked_scatter", {"[4]", "[2, 3]"}, [] {
    masked_scatter(floats({2, 3}), zeros({2}, DType::bool_), floats({4}));
  });
  refuse("slice", {"f32[1]"}, [] { slice(floats({2}), floats({1}), {0}, {1}); });
  refuse("slice", {"i32[1, 1]", "[0]"}, [] { slice(floats({2}), ints({1, 1}), {0}, {1}); });
  refuse("slice_update", {"f32[2, 2, 2]", "f32[2, 3]"}, [] {
    slice_update(floats({2, 3}), floats({2, 2, 2}), ints({1}), {0});
  });
  refuse("slice_update_add", {"q8_0"}, [] { slice_update_add(blocks(), 1, {0, 0}, {1, 64}); });
  refuse("slice_update_max", {"complex64"}, [=] { slice_update_max(complex, 1, {0}, {1}); });
  refuse("slice_update_min", {"stride", "0"},
         [] { slice_update_min(floats({2}), 1, {0}, {1}, {0}); });
  refuse("slice_update_prod", {"[4]"},
         [] { slice_update_prod(floats({3}), floats({4}), {0}, {3}); });
}

void add_walked(std::vector<Walked>& all) {
  add_order(all);
  add_choice(all);
  add_slices(all);
  add_updates(all);
}

void add_refused(std::vector<Refused>& all) {
  refuse_order(all);
  refuse_choice(all);
  refuse_slices(all);
}

void add_axis(std::vector<TakesAxis>& all) {
  const auto indices = [](const Array& x) { return zeros_of({DType::i32, x.shape()}); };
  const std::vector<TakesAxis> more = {
      {"argmax", [](const Array& x, int axis) { argmax(x, axis); }},
      {"argmin", [](const Array& x, int axis) { argmin(x, axis); }},
      {"topk", [](const Array& x, int axis) { topk(x, 1, axis); }},
      {"topk_with_indices", [](const Array& x, int axis) { topk_with_indices(x, 1, axis); }},
      {"sort", [](const Array& x, int axis) { sort(x, axis); }},
      {"argsort", [](const Array& x, int axis) { argsort(x, axis); }},
      {"partition", [](const Array& x, int axis) { partition(x, 0, axis); }},
      {"argpartition", [](const Array& x, int axis) { argpartition(x, 0, axis); }},
      {"take", [](const Array& x, int axis) { take(x, Array({0}), axis); }},
      {"take", [](const Array& x, int axis) { take(x, 0, axis); }},
      {"take_along_axis", [=](const Array& x, int axis) { take_along_axis(x, indices(x), axis); }},
      {"put_along_axis", [=](const Array& x, int axis) { put_along_axis(x, indices(x), 1, axis); }},
      {"scatter_add_axis",
       [=](const Array& x, int axis) { scatter_add_axis(x, indices(x), 1, axis); }},
      {"scatter_axis",
       [=](const Array& x, int axis) { scatter_axis(x, indices(x), 1, axis, ScatterKind::max); }},
      {"gather", [](const Array& x, int axis) { gather(x, Array({0}), axis, x.shape()); }},
      {"scatter", [](const Array& x, int axis) { scatter(x, Array(0), x, axis); }},
      {"scatter_add", [](const Array& x, int axis) { scatter_add(x, Array(0), x, axis); }},
  };
  all.insert(all.end(), more.begin(), more.end());
}

void add_axes(std::vector<TakesAxes>& all) {
  const auto zeros = [](const Dims& axes) { return std::vector<Array>(axes.size(), Array(0)); };
  const auto start = [](const Dims& axes) {
    return ints({static_cast<std::int64_t>(axes.size())});
  };
  const std::vector<TakesAxes> more = {
      {"gather",
       [=](const Array& x, const Dims& axes) { gather(x, zeros(axes), axes, x.shape()); }},
      {"scatter", [=](const Array& x, const Dims& axes) { scatter(x, zeros(axes), x, axes); }},
      {"scatter_max",
       [=](const Array& x, const Dims& axes) { scatter_max(x, zeros(axes), x, axes); }},
      {"slice", [=](const Array& x, const Dims& axes) { slice(x, start(axes), axes, x.shape()); }},
      {"slice_update",
       [=](const Array& x, const Dims& axes) { slice_update(x, x, start(axes), axes); }},
  };
  all.insert(all.end(), more.begin(), more.end());
}

const Family kFamily({add_walked, add_axis, add_axes, add_refused});

}  // namespace

}  // namespace heddle::test
