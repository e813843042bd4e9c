// Files and memory of others: calls that nothing makes right. What is wrong inside of files and
// tensors has tests of its own (array_files_hostile_test.cpp, dlpack_test.cpp).
#include "bad_input_walk.h"
#include "heddle/dlpack.h"
#include "heddle/io.h"

namespace heddle::test {

namespace {

const char kAbsent[] = "/nowhere/arrays.npy";

void add_loads(std::vector<Refused>& all) {
  all.push_back({"load", {kAbsent, "No such file"}, [] { load(kAbsent); }});
  all.push_back({"load_npz", {kAbsent, "No such file"}, [] { load_npz(kAbsent); }});
  all.push_back({"load_safetensors", {kAbsent, "No such file"}, [] { load_safetensors(kAbsent); }});
  all.push_back({"load_gguf", {kAbsent, "No such file"}, [] { load_gguf(kAbsent); }});
}

void add_saves(std::vector<Refused>& all) {
  const ArrayMap good{{"a", floats({2})}}, in_blocks{{"a", blocks()}};
  all.push_back({"save", {kAbsent}, [] { save(kAbsent, floats({2})); }});
  all.push_back({"save", {"q8_0"}, [] { save(kAbsent, blocks()); }});
  all.push_back({"savez", {"/nowhere"}, [good] { savez("/nowhere/a.npz", good); }});
  all.push_back({"savez", {"q8_0"}, [in_blocks] { savez("/nowhere/a.npz", in_blocks); }});
  all.push_back(
      {"savez_compressed", {"/nowhere"}, [good] { savez_compressed("/nowhere/a.npz", good); }});
  all.push_back({"savez_compressed", {"q8_0"}, [in_blocks] {
                   savez_compressed("/nowhere/a.npz", in_blocks);
                 }});
  all.push_back({"save_safetensors", {"/nowhere"}, [good] {
                   save_safetensors("/nowhere/a.safetensors", good);
                 }});
  all.push_back({"save_safetensors", {"q8_0"}, [in_blocks] {
                   save_safetensors("/nowhere/a.safetensors", in_blocks);
                 }});
  all.push_back({"save_gguf", {"/nowhere"}, [good] { save_gguf("/nowhere/a.gguf", good); }});
  all.push_back({"save_gguf", {"f16[2]"}, [good] {
                   save_gguf("/nowhere/a.gguf", good, {{"key", zeros_of({DType::f16, {2}})}});
                 }});
}

void add_memory(std::vector<Refused>& all) {
  all.push_back({"from_memory", {"null"}, [] { from_memory(nullptr, {2}, DType::f32, {}); }});
  all.push_back({"from_memory", {"q8_0"}, [] {
                   alignas(64) static std::byte memory[64];
                   from_memory(memory, {32}, DType::q8_0, {});
                 }});
  all.push_back({"from_memory", {"no multiple of 4 bytes"}, [] {
                   alignas(64) static std::byte memory[64];
                   from_memory(memory + 1, {2}, DType::f32, {});
                 }});
  all.push_back({"from_dlpack", {"no tensor"}, [] {
                   from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr));
                 }});
  all.push_back({"from_dlpack", {"no tensor"}, [] {
                   from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(nullptr));
                 }});
  all.push_back({"to_dlpack", {"q8_0"}, [] { to_dlpack(blocks()); }});
  all.push_back({"to_dlpack_versioned", {"q8_0"}, [] { to_dlpack_versioned(blocks()); }});
}

void add_refused(std::vector<Refused>& all) {
  add_loads(all);
  add_saves(all);
  add_memory(all);
}

const Family kFiles({.refused = add_refused});

}  // namespace

}  // namespace heddle::test
