#include <iostream>

#include "heddle/llm.h"
#include "heddle/ops.h"

int main() {
  const heddle::Array x({1.0f, 2.0f, 3.0f});
  std::cout << x * x + 2.0f << "\n";
  std::cout << heddle::llm::Model::bundled()->config().name << "\n";
}
