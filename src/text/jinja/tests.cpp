// What can follow `is`.
#include "text/jinja/arithmetic.h"
#include "text/jinja/native.h"

namespace heddle::text::jinja {

namespace {

using R = Runtime&;
using V = const Value&;
using A = const Arguments&;

bool is_sequence(const Value& value) {
  const Sequence* s = value.sequence();
  const bool indexed =
      s != nullptr && (s->kind <= SequenceKind::tuple || s->kind == SequenceKind::range);
  return indexed || value.text() != nullptr || value.dict() != nullptr || value.is_undefined();
}

/// Python has an undefined value be callable, until it is called.
bool is_callable(const Value& value) {
  return value.is_undefined() || (value.object() != nullptr && value.object()->callable());
}

bool is_iterable(const Value& value) {
  return value.sequence() != nullptr || is_sequence(value);
}

bool has_rest(Runtime& run, const Value& value, const Value& divisor, std::int64_t rest) {
  return equal(run, arithmetic(run, "%", value, divisor), Value::integer(rest));
}

bool method_holds(Runtime& run, const Value& value, std::string_view method) {
  const Value text = run.string(shown(run, value));
  return truth(run, text_methods().at(method).apply(run, text, bind(method, "", {})));
}

bool is_bool(const Value& value, bool wanted) {
  return value.is<bool>() && (*value.integer() != 0) == wanted;
}

bool is_name(const Value& value, bool (*known)(std::string_view)) {
  return value.text() != nullptr && known(value.text()->bytes());
}

template <const char* op>
bool relation(R run, V value, A a) {
  return related(run, op, value, a.positional[0]);
}

constexpr char kEq[] = "==", kNe[] = "!=", kLt[] = "<", kLe[] = "<=", kGt[] = ">",
               kGe[] = ">=", kIn[] = "in";

const std::map<std::string_view, Test>& tests() {
  static const auto all = [] {
    std::map<std::string_view, Test> map;
    for (const Test& test : std::initializer_list<Test>{
             {"defined", 0, [](R, V v, A) { return !v.is_undefined(); }},
             {"undefined", 0, [](R, V v, A) { return v.is_undefined(); }},
             {"none", 0, [](R, V v, A) { return v.is_none(); }},
             {"string", 0, [](R, V v, A) { return v.text() != nullptr; }},
             {"number", 0, [](R, V v, A) { return v.is_number(); }},
             {"integer", 0, [](R, V v, A) { return v.is<std::int64_t>(); }},
             {"float", 0, [](R, V v, A) { return v.is<double>(); }},
             {"boolean", 0, [](R, V v, A) { return v.is<bool>(); }},
             {"true", 0, [](R, V v, A) { return is_bool(v, true); }},
             {"false", 0, [](R, V v, A) { return is_bool(v, false); }},
             {"mapping", 0, [](R, V v, A) { return v.dict() != nullptr; }},
             {"sequence", 0, [](R, V v, A) { return is_sequence(v); }},
             {"iterable", 0, [](R, V v, A) { return is_iterable(v); }},
             {"callable", 0, [](R, V v, A) { return is_callable(v); }},
             {"odd", 0, [](R r, V v, A) { return has_rest(r, v, Value::integer(2), 1); }},
             {"even", 0, [](R r, V v, A) { return has_rest(r, v, Value::integer(2), 0); }},
             {"divisibleby", 1, [](R r, V v, A a) { return has_rest(r, v, a.positional[0], 0); }},
             {"lower", 0, [](R r, V v, A) { return method_holds(r, v, "islower"); }},
             {"upper", 0, [](R r, V v, A) { return method_holds(r, v, "isupper"); }},
             {"escaped", 0, [](R, V, A) { return false; }},
             {"sameas", 1, [](R, V v, A a) { return v.same_object(a.positional[0]); }},
             {"filter", 0,
              [](R, V v, A) {
                return is_name(v, [](std::string_view n) { return find_filter(n) != nullptr; });
              }},
             {"test", 0,
              [](R, V v, A) {
                return is_name(v, [](std::string_view n) { return find_test(n) != nullptr; });
              }},
             {"in", 1, relation<kIn>},
             {"eq", 1, relation<kEq>},
             {"==", 1, relation<kEq>},
             {"equalto", 1, relation<kEq>},
             {"ne", 1, relation<kNe>},
             {"!=", 1, relation<kNe>},
             {"lt", 1, relation<kLt>},
             {"<", 1, relation<kLt>},
             {"lessthan", 1, relation<kLt>},
             {"le", 1, relation<kLe>},
             {"<=", 1, relation<kLe>},
             {"gt", 1, relation<kGt>},
             {">", 1, relation<kGt>},
             {"greaterthan", 1, relation<kGt>},
             {"ge", 1, relation<kGe>},
             {">=", 1, relation<kGe>},
         })
      map.emplace(test.name, test);
    return map;
  }();
  return all;
}

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : &found->second;
}

}  // namespace heddle::text::jinja
