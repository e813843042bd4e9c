// What is going on, on one line of standard error that is overwritten: on a terminal only.
#pragma once

#include <string>

namespace heddle::cli {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& text);
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
};

}  // namespace heddle::cli
