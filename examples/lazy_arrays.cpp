// Lazy arrays: expressions are recorded, and computed when someone looks.
#include <heddle/ops.h>

#include <iostream>

int main() {
  using namespace heddle;
  const Array x = reshape(arange(0, 6, 1), {2, 3});
  const Array y = softmax(x * 0.5f, -1);
  const Array z = matmul(y, transpose(y));
  eval(y, z);
  std::cout << y << "\n" << z << "\n";
}
