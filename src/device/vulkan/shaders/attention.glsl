// Attention of some rows (queries of heads that share a head of keys and values) over positions.
// Shared by attend and attention, so that both have one arithmetic. Rows are independent (rule 17):
//
//   - Positions are taken in blocks of kBlock, and blocks in splits of kSplit, both counted from
//     position 0. Every split has softmax sums of its own, which join the total in order.
//   - What a row does not see changes none of its bits, whoever else in the workgroup sees it.
//   - Sums run over features and positions in order, in fma.
//
// For scores a lane has positions, for values it has features. Rows are the components of vec4s.
// What is done once a block is a loop, not unrolled: such a shader is long, and some drivers compile
// it slowly. Who includes this (after types.glsl, group.glsl and softmax_sums.glsl) defines
//   kFeatures, kValueFeatures, kKeyType, kValueType   of heads
//   kKeysInFours, kValuesInFours     heads of f16, bf16 or f32 are some fours of features, and begin
//                                    at multiples of 8 bytes
//   kRowVectors, kLanePositions      rows / 4, and positions of a block to a lane
//   kSplit                           positions of a split: some blocks
// and
//   uint row_of(uint position)       where the position's key and value lie, or kNowhere
//   uint64_t key_at(uint row), value_at(uint row)   addresses of heads
//   void mask_scores(uint position, uint row_vector, inout vec4 scores)
const uint kNowhere = 0xffffffffu;
uint row_of(uint position);
uint64_t key_at(uint row);
uint64_t value_at(uint row);
void mask_scores(uint position, uint row_vector, inout vec4 scores);

const uint kBlock = kGroupSize * kLanePositions;
const uint kRows = 4 * kRowVectors;
const uint kKeyChunks = (kFeatures + 3) / 4, kValueChunks = (kValueFeatures + 3) / 4;
const uint kLaneChunks = (kValueChunks + kGroupSize - 1) / kGroupSize;
const uint kLaneFeatures = 4 * kLaneChunks;
const uint kChunks = kKeyChunks > kValueChunks ? kKeyChunks : kValueChunks;

shared vec4 queries[kChunks * 4 * kRowVectors];  // [feature][row vector], scaled to powers of 2
shared vec4 weights[kBlock * kRowVectors];       // [position][row vector]; scores before
shared uint rows_of_block[kBlock];

const float kHidden = -1.0;  // instead of a weight: the row does not see the position

// What each row sees: positions [begin, end).
uvec4 seen_begin[kRowVectors], seen_end[kRowVectors];
uint all_begin, all_end;    // what any row sees lies in here
uint full_begin, full_end;  // and this all rows see

// Softmax sums of the rows over a split, and over the splits before; of values the lane's features.
vec4 maximum[kRowVectors], sum[kRowVectors], sums[kRowVectors * kLaneFeatures];
vec4 total_maximum[kRowVectors], total_sum[kRowVectors], total[kRowVectors * kLaneFeatures];

// ---- Elements of heads, four at a time from a feature that is a multiple of 4

float block_scale(uint type, uint64_t head, uint feature) {
  return type == kQ8_0 ? f16_to_float(load_u16(head + feature / 32u * 34u)) : 1.0;
}

vec4 load_q8_0(uint64_t head, uint feature, float scale) {
  const uint64_t at = head + feature / 32u * 34u + 2u + feature % 32u;
  const int bits = int(load_u16(at) | load_u16(at + 2ul) << 16);
  const ivec4 q = ivec4(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8),
                        bitfieldExtract(bits, 16, 8), bitfieldExtract(bits, 24, 8));
  return vec4(q) * scale;
}

// In one or two loads of 8 bytes: each costs some drivers as much as one of 4.
vec4 load_adjacent(uint type, uint64_t at) {
  const uvec2 low = unpackUint2x32(U64s(at).at[0]);
  if (type == kF32) {
    const uvec2 high = unpackUint2x32(U64s(at).at[1]);
    return uintBitsToFloat(uvec4(low, high));
  }
  if (type == kF16) return vec4(unpackHalf2x16(low.x), unpackHalf2x16(low.y));
  return uintBitsToFloat(uvec4(low.x << 16, low.x & 0xffff0000u, low.y << 16, low.y & 0xffff0000u));
}

vec4 load_some(uint type, uint64_t head, uint feature, uint features) {
  vec4 x = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (feature + i < features) x[i] = load_float(type, head, feature + i);
  }
  return x;
}

vec4 load_four(uint type, bool in_fours, uint64_t head, uint feature, uint features, float scale) {
  if (type == kQ8_0) return load_q8_0(head, feature, scale);
  if (!in_fours) return load_some(type, head, feature, features);
  return load_adjacent(type, head + feature * (type == kF32 ? 4u : 2u));
}

// ---- A block's scores and weights. The lane has positions lane, lane + kGroupSize, ... of it.

void find_rows(uint block) {
  for (uint at = gl_LocalInvocationIndex; at < kBlock; at += kGroupSize) {
    const uint position = block + at;
    uint row = kNowhere;
    if (position >= all_begin && position < all_end) row = row_of(position);
    rows_of_block[at] = row;
  }
}

void score_block() {
  vec4 scores[kLanePositions * kRowVectors];
  uint64_t keys[kLanePositions];
  bool there[kLanePositions];
  [[unroll]] for (uint m = 0u; m < kLanePositions; ++m) {
    const uint row = rows_of_block[m * kGroupSize + gl_LocalInvocationIndex];
    there[m] = row != kNowhere;
    keys[m] = key_at(there[m] ? row : 0u);
    [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) scores[m * kRowVectors + v] = vec4(0.0);
  }
  for (uint from = 0u; from < kFeatures; from += 32u) {
    float scale[kLanePositions];
    [[unroll]] for (uint m = 0u; m < kLanePositions; ++m) {
      scale[m] = 0.0;
      if (there[m]) scale[m] = block_scale(kKeyType, keys[m], from);
    }
    for (uint feature = from; feature < min(from + 32u, kFeatures); feature += 4u) {
      vec4 k[kLanePositions];
      [[unroll]] for (uint m = 0u; m < kLanePositions; ++m) {
        k[m] = vec4(0.0);
        if (there[m]) {
          k[m] = load_four(kKeyType, kKeysInFours, keys[m], feature, kFeatures, scale[m]);
        }
      }
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
          const vec4 q = queries[(feature + i) * kRowVectors + v];
          [[unroll]] for (uint m = 0u; m < kLanePositions; ++m) {
            const uint at = m * kRowVectors + v;
            scores[at] = fma(q, vec4(k[m][i]), scores[at]);
          }
        }
      }
    }
  }
  [[unroll]] for (uint at = 0u; at < kLanePositions * kRowVectors; ++at) {
    const uint m = at / kRowVectors, v = at % kRowVectors;
    weights[(m * kGroupSize + gl_LocalInvocationIndex) * kRowVectors + v] = scores[at];
  }
}

bvec4 both(bvec4 a, bvec4 b) {
  return bvec4(uvec4(a) & uvec4(b));
}

bvec4 sees(uint v, uint position) {
  return both(greaterThanEqual(uvec4(position), seen_begin[v]),
              lessThan(uvec4(position), seen_end[v]));
}

// The maxima of the lane's scores, which are masked on the way.
void find_maxima(uint block, inout vec4 most[kRowVectors]) {
  for (uint at = gl_LocalInvocationIndex; at < kBlock; at += kGroupSize) {
    const uint position = block + at;
    const bool there = rows_of_block[at] != kNowhere;
    [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
      vec4 score = weights[at * kRowVectors + v];
      if (there) mask_scores(position, v, score);
      weights[at * kRowVectors + v] = score;
      const bvec4 seen = both(sees(v, position), bvec4(there));
      most[v] = mix(most[v], larger(score, most[v]), seen);
    }
  }
}

// The lane's scores become weights.
void weigh(uint block) {
  for (uint at = gl_LocalInvocationIndex; at < kBlock; at += kGroupSize) {
    const bool there = rows_of_block[at] != kNowhere;
    [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
      const vec4 weight = weight_of(weights[at * kRowVectors + v], maximum[v]);
      const bvec4 seen = both(sees(v, block + at), bvec4(there));
      sum[v] += mix(vec4(0.0), weight, seen);
      weights[at * kRowVectors + v] = mix(vec4(kHidden), weight, seen);
    }
  }
}

void weigh_block(uint block) {
  find_rows(block);
  score_block();
  vec4 most[kRowVectors];
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) most[v] = vec4(-infinity());
  find_maxima(block, most);
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    most[v] = vec4(group_max(most[v].x), group_max(most[v].y), group_max(most[v].z),
                   group_max(most[v].w));
    const vec4 old = maximum[v];
    maximum[v] = larger(most[v], old);
    const vec4 rescale = weight_of(old, maximum[v]);
    precise const vec4 scaled_sum = sum[v] * rescale;
    sum[v] = scaled_sum;
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) {
      precise const vec4 scaled = sums[v * kLaneFeatures + i] * rescale;
      sums[v * kLaneFeatures + i] = scaled;
    }
  }
  weigh(block);
}

// ---- A block's values

void add_value(uint at, bool all_see) {
  const uint row = rows_of_block[at];
  const uint64_t head = value_at(row == kNowhere ? 0u : row);
  const uint first = gl_LocalInvocationIndex * kLaneFeatures;
  [[unroll]] for (uint c = 0u; c < kLaneChunks; ++c) {
    const uint feature = first + 4u * c;
    vec4 x = vec4(0.0);
    if (feature < kValueFeatures) {
      const float scale = block_scale(kValueType, head, feature);
      x = load_four(kValueType, kValuesInFours, head, feature, kValueFeatures, scale);
    }
    [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
      const vec4 weight = weights[at * kRowVectors + v];
      const bvec4 hidden = lessThan(weight, vec4(0.0));
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        const uint to = v * kLaneFeatures + 4u * c + i;
        const vec4 more = fma(weight, vec4(x[i]), sums[to]);
        sums[to] = all_see ? more : mix(more, sums[to], hidden);
      }
    }
  }
}

void add_values(uint block) {
  const uint begin = max(block, all_begin), end = min(block + kBlock, all_end);
  if (begin >= full_begin && end <= full_end) {
    for (uint position = begin; position < end; ++position) add_value(position - block, true);
  } else {
    for (uint position = begin; position < end; ++position) add_value(position - block, false);
  }
}

// ---- Splits

void clear_split() {
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    maximum[v] = vec4(-infinity());
    sum[v] = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) sums[v * kLaneFeatures + i] = vec4(0.0);
  }
}

// The rows' sums over what they see of the split from `begin` on. All invocations must come.
void sum_split(uint begin) {
  clear_split();
  const uint end = min(begin + kSplit, all_end);
  for (uint block = max(begin, all_begin / kBlock * kBlock); block < end; block += kBlock) {
    weigh_block(block);
    barrier();
    add_values(block);
    barrier();  // before rows and weights are overwritten
  }
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    sum[v] = vec4(group_sum(sum[v].x), group_sum(sum[v].y), group_sum(sum[v].z),
                  group_sum(sum[v].w));
  }
}

void clear_total() {
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    total_maximum[v] = vec4(-infinity());
    total_sum[v] = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) total[v * kLaneFeatures + i] = vec4(0.0);
  }
}

void join_split() {
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    const Joining_vec4 parts = joining(total_maximum[v], maximum[v]);
    total_maximum[v] = parts.maximum;
    total_sum[v] = joined(total_sum[v], parts.of_a, sum[v], parts.of_b);
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) {
      const uint at = v * kLaneFeatures + i;
      total[at] = joined(total[at], parts.of_a, sums[at], parts.of_b);
    }
  }
}

// Joins the sums over all that any row sees to the total. All invocations must come.
void sum_all() {
  for (uint begin = all_begin / kSplit * kSplit; begin < all_end; begin += kSplit) {
    sum_split(begin);
    join_split();
  }
}

// ---- Results: those of a split or of all, in shared memory in place of queries and weights. All
// invocations must come.

void share(bool of_total) {
  const uint first = gl_LocalInvocationIndex * kLaneFeatures;
  [[unroll]] for (uint v = 0u; v < kRowVectors; ++v) {
    if (gl_LocalInvocationIndex == 0u) {
      weights[v] = of_total ? total_maximum[v] : maximum[v];
      weights[kRowVectors + v] = of_total ? total_sum[v] : sum[v];
    }
    [[unroll]] for (uint i = 0u; i < kLaneFeatures; ++i) {
      const uint at = v * kLaneFeatures + i;
      if (first + i < kValueFeatures) {
        queries[(first + i) * kRowVectors + v] = of_total ? total[at] : sums[at];
      }
    }
  }
  barrier();
}
float shared_maximum(uint row) {
  return weights[row / 4u][row % 4u];
}
float shared_sum(uint row) {
  return weights[kRowVectors + row / 4u][row % 4u];
}
float shared_value(uint row, uint feature) {
  return queries[feature * kRowVectors + row / 4u][row % 4u];
}
