// Handwriting of a sort: digits drawn as strokes, slanted, shifted, thick or thin, and noisy, are
// told apart by a small convolutional network that a compiled step trains.
#include <heddle/compile.h>
#include <heddle/losses.h>
#include <heddle/nn.h>
#include <heddle/optimizers.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

namespace {

using namespace heddle;

constexpr int kSize = 16;  // pixels a side
constexpr int kTraining = 6000, kHeldOut = 2000, kBatch = 60, kEpochs = 5;
constexpr double kWanted = 0.97;

struct Point {
  float x, y;  // within the unit square, y downwards
};
const std::vector<Point> kStrokes[10] = {
    {{.5f, .1f},
     {.3f, .2f},
     {.25f, .5f},
     {.3f, .8f},
     {.5f, .9f},
     {.7f, .8f},
     {.75f, .5f},
     {.7f, .2f},
     {.5f, .1f}},
    {{.33f, .27f}, {.55f, .1f}, {.55f, .9f}},
    {{.25f, .3f}, {.35f, .13f}, {.6f, .1f}, {.75f, .28f}, {.65f, .5f}, {.25f, .9f}, {.78f, .9f}},
    {{.27f, .15f},
     {.5f, .1f},
     {.72f, .2f},
     {.7f, .38f},
     {.45f, .48f},
     {.72f, .6f},
     {.74f, .78f},
     {.5f, .9f},
     {.25f, .85f}},
    {{.62f, .9f}, {.62f, .1f}, {.22f, .65f}, {.8f, .65f}},
    {{.72f, .1f},
     {.32f, .1f},
     {.28f, .45f},
     {.55f, .42f},
     {.75f, .58f},
     {.72f, .8f},
     {.5f, .9f},
     {.25f, .85f}},
    {{.65f, .1f},
     {.4f, .3f},
     {.27f, .6f},
     {.32f, .83f},
     {.5f, .9f},
     {.7f, .8f},
     {.72f, .62f},
     {.52f, .5f},
     {.3f, .6f}},
    {{.22f, .1f}, {.78f, .1f}, {.42f, .9f}},
    {{.5f, .48f},
     {.3f, .35f},
     {.33f, .17f},
     {.5f, .1f},
     {.68f, .18f},
     {.7f, .35f},
     {.5f, .48f},
     {.28f, .62f},
     {.3f, .82f},
     {.5f, .9f},
     {.7f, .82f},
     {.72f, .62f},
     {.5f, .48f}},
    {{.7f, .38f},
     {.5f, .5f},
     {.3f, .4f},
     {.3f, .2f},
     {.48f, .1f},
     {.68f, .18f},
     {.7f, .38f},
     {.62f, .7f},
     {.5f, .9f}}};

float distance(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float along = ((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy);
  const float t = std::clamp(along, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/// The digit as somebody draws it, in kSize * kSize pixels of about 0 to 1.
void draw(int digit, std::mt19937& random, std::vector<float>& pixels) {
  const auto between = [&](float low, float high) {
    return low + (high - low) * static_cast<float>(random() / 4294967296.0);
  };
  const float slant = between(-.35f, .35f), turn = between(-.2f, .2f);
  const float width = between(.6f, 1.1f), height = between(.7f, 1.1f);
  const float right = between(-.1f, .1f), down = between(-.1f, .1f);
  const float thickness = between(.03f, .08f), noise = between(.02f, .2f);

  std::vector<Point> stroke = kStrokes[digit];
  for (Point& point : stroke) {
    const float y = (point.y - .5f) * height + between(-.02f, .02f);
    const float x = (point.x - .5f) * width - slant * y + between(-.02f, .02f);
    point = {.5f + right + x * std::cos(turn) - y * std::sin(turn),
             .5f + down + x * std::sin(turn) + y * std::cos(turn)};
  }
  for (int i = 0; i < kSize * kSize; ++i) {
    const Point pixel{(static_cast<float>(i % kSize) + .5f) / kSize,
                      (static_cast<float>(i / kSize) + .5f) / kSize};
    float nearest = 1;
    for (std::size_t s = 1; s < stroke.size(); ++s) {
      nearest = std::min(nearest, distance(pixel, stroke[s - 1], stroke[s]));
    }
    const float ink = std::clamp((thickness - nearest) * kSize + .5f, 0.0f, 1.0f);
    pixels.push_back(ink + between(-noise, noise));
  }
}

struct Digits {
  Array images;  // [N, kSize, kSize, 1]
  Array labels;  // i32 [N]
};

Digits draw_digits(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    labels.push_back(i % 10);
    draw(i % 10, random, pixels);
  }
  return {Array(pixels, {count, kSize, kSize, 1}), Array(labels, {count})};
}

const nn::Conv2dOptions kHalving{.stride = {2, 2}, .padding = {1, 1}};

struct Network {
  nn::Conv2d edges, shapes;
  nn::Linear digits;

  explicit Network(const Array& key)
      : edges(1, 8, {3, 3}, random::split(key).first, kHalving),
        shapes(8, 24, {3, 3}, random::split(key).second, kHalving),
        digits(24 * kSize / 4 * kSize / 4, 10, key) {}

  Array operator()(const Array& images) const {
    const Array seen = relu(shapes(relu(edges(images))));
    return digits(reshape(seen, {images.shape(0), -1}));
  }
  auto leaves() const { return nn::named("edges", edges, "shapes", shapes, "digits", digits); }
};

Array loss_of(const Network& network, const Array& images, const Array& labels) {
  return mean(nn::losses::cross_entropy(network(images), labels));
}

}  // namespace

int main() {
  const Digits training = draw_digits(kTraining, 1), held_out = draw_digits(kHeldOut, 2);
  Network network(random::key(3));
  optim::Adam optimizer(optim::cosine_decay(4e-3, kEpochs * kTraining / kBatch));
  optimizer.init(network);
  const ArraysFunction step = compile(
      [&](const std::vector<Array>& batch) {
        const auto [loss, gradients] = value_and_grad(loss_of, network, batch[0], batch[1]);
        optimizer.update(network, gradients);
        return std::vector<Array>{loss};
      },
      false, nn::state_of(network, optimizer));

  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Array order = random::permutation(kTraining, random::key(static_cast<unsigned>(epoch)));
    Array loss = 0.0f;
    for (int first = 0; first < kTraining; first += kBatch) {
      const Array chosen = slice(order, {first}, {first + kBatch});
      loss = step({take(training.images, chosen, 0), take(training.labels, chosen, 0)})[0];
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << loss.item<float>() << std::endl;
  }
  const Array right = equal(argmax(network(held_out.images), -1), held_out.labels);
  const float accuracy = mean(astype(right, DType::f32)).item<float>();
  std::cout << "held-out accuracy " << accuracy << " over " << kHeldOut << " digits\n";
  return accuracy >= kWanted ? 0 : 1;
}
