// One callable of several, for std::visit.
#pragma once

namespace heddle {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
// Clang 16 does not yet deduce an aggregate's arguments by itself.
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace heddle
