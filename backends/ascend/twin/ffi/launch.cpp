// The XLA FFI target through which a jitted graph on CPU runs a kernel on the twin, in place.
//
// One target serves all kernels: which one to run, and how, are attributes of the custom call. They are plain data (paths,
// not addresses), so that an executable that JAX keeps on disk is right in another process too.
#include <dlfcn.h>

#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "twin/runtime/abi.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// Reads the flat objects of a report, which the runtime wrote: members are strings or whole numbers.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool Take(std::string_view token) {
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::string String() {
    std::string out;
    Take("\"");
    while (!rest_.empty() && !Take("\"")) {
      if (Take("\\u")) {
        int code = 0;
        std::from_chars(rest_.data(), rest_.data() + 4, code, 16);
        rest_.remove_prefix(4);
        out += static_cast<char>(code);  // control characters only
        continue;
      }
      Take("\\");
      out += rest_.front();
      rest_.remove_prefix(1);
    }
    return out;
  }

  std::map<std::string, std::string> Object() {
    std::map<std::string, std::string> members;
    Take("{");
    while (!rest_.empty() && !Take("}")) {
      Take(",");
      std::string name = String();
      Take(":");
      if (rest_.front() == '"') {
        members[name] = String();
        continue;
      }
      size_t length = rest_.find_first_of(",}");
      members[name] = std::string(rest_.substr(0, length));
      rest_.remove_prefix(length);
    }
    return members;
  }

 private:
  std::string_view rest_;
};

// Where a finding is: the call in the kernel's source, and the line of Python that calls the operator.
std::string PlaceOf(const std::string& file, const std::string& line, const std::string& caller,
                    std::string_view python) {
  if (line == "0") return "";
  std::string place = file + ":" + line;
  if (caller != "0") place += ", called on line " + caller;
  if (!python.empty()) place += " (" + std::string(python) + ")";
  return place + ": ";
}

// What there is to say about a run, empty for a sound one. Findings read as in Python: a line each, those of one kind at
// the same lines as one with a count.
std::string Problems(std::string_view report, const std::string& kernel, std::string_view python) {
  Reader reader(report);
  if (report.substr(0, 8) == "{\"error\"") return "the twin could not run " + kernel + ": " + reader.Object()["error"];
  if (!reader.Take("{\"findings\":[")) return "the twin gave no report of " + kernel;
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, size_t> known;
  std::vector<std::string> lines;
  std::vector<uint64_t> counts;
  while (!reader.Take("]")) {
    reader.Take(",");
    auto f = reader.Object();
    auto [at, fresh] = known.emplace(Key{f["kind"], f["file"], f["line"], f["other_file"], f["other_line"], f["caller"]},
                                    lines.size());
    if (fresh) {
      lines.push_back(PlaceOf(f["file"], f["line"], f["caller"], python) + f["kind"] + ": " + f["message"] + " [block " + f["block"] + "]");
      counts.push_back(0);
    }
    counts[at->second] += std::stoull(f["count"]);
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    text += "\n" + lines[i];
    if (counts[i] > 1) text += " (" + std::to_string(counts[i]) + " times)";
  }
  return text.empty() ? text : "the twin's checker rejects kernel " + kernel + ":" + text;
}

void* Open(std::string_view path, int scope) { return dlopen(std::string(path).c_str(), RTLD_NOW | scope); }

ffi::Error Missing() {
  const char* why = dlerror();
  return ffi::Error(ffi::ErrorCode::kNotFound, std::string("a part of the twin is gone from the cache: ") + (why ? why : ""));
}

ffi::Error Launch(ffi::RemainingArgs inputs, ffi::RemainingRets outputs, std::string_view runtime, std::string_view library,
                  std::string_view kernel, std::string_view python, ffi::Span<const uint8_t> tiling, ffi::Span<const uint8_t> fill, int64_t blocks,
                  int64_t workspace_bytes, int64_t arch, int64_t ub_bytes, int64_t cores) {
  void* machine = Open(runtime, RTLD_GLOBAL);  // for the kernel, which is linked without it
  void* code = machine ? Open(library, RTLD_LOCAL) : nullptr;
  if (!code) return Missing();
  const std::string name(kernel);
  void* entry = dlsym(code, name.c_str());
  auto run = reinterpret_cast<twin::RunFunction>(dlsym(machine, "jascend_twin_run"));
  auto release = reinterpret_cast<twin::FreeFunction>(dlsym(machine, "jascend_twin_free"));
  if (!entry || !run || !release) return Missing();

  std::vector<twin::Array> arrays;
  auto add = [&](const ffi::AnyBuffer& buffer, bool writable) {
    uint32_t alias = arrays.size();
    for (uint32_t i = 0; i < arrays.size(); ++i)  // one value may be two operands
      if (arrays[i].data == buffer.untyped_data() && buffer.size_bytes()) alias = arrays[i].alias;
    arrays.push_back({buffer.untyped_data(), buffer.size_bytes(), writable, alias});
  };
  for (size_t i = 0; i < inputs.size(); ++i) add(inputs.get<ffi::AnyBuffer>(i).value(), false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ffi::AnyBuffer output = *outputs.get<ffi::AnyBuffer>(i).value();
    std::memset(output.untyped_data(), fill.begin()[i], output.size_bytes());
    add(output, true);
  }

  twin::Options options = {};
  options.tilingBytes = tiling.size();
  options.tiling = tiling.begin();
  options.blocks = static_cast<uint32_t>(blocks);
  options.workspaceBytes = static_cast<uint64_t>(workspace_bytes);
  options.check = 1;
  options.arch = static_cast<uint32_t>(arch);
  options.ubBytes = static_cast<uint32_t>(ub_bytes);
  options.physicalCores = static_cast<uint32_t>(cores);
  std::unique_ptr<char, twin::FreeFunction> report(run(entry, arrays.data(), arrays.size(), &options), release);
  if (!report) return ffi::Error(ffi::ErrorCode::kResourceExhausted, "the twin has no memory for its report");
  std::string problems = Problems(report.get(), name, python);
  return problems.empty() ? ffi::Error::Success() : ffi::Error(ffi::ErrorCode::kInternal, problems);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* jascend_twin_launch(XLA_FFI_CallFrame* frame);
XLA_FFI_DEFINE_HANDLER_SYMBOL(jascend_twin_launch, Launch,
                              ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<std::string_view>("runtime")
                                  .Attr<std::string_view>("library")
                                  .Attr<std::string_view>("kernel")
                                  .Attr<std::string_view>("python")
                                  .Attr<ffi::Span<const uint8_t>>("tiling")
                                  .Attr<ffi::Span<const uint8_t>>("fill")
                                  .Attr<int64_t>("blocks")
                                  .Attr<int64_t>("workspace_bytes")
                                  .Attr<int64_t>("arch")
                                  .Attr<int64_t>("ub_bytes")
                                  .Attr<int64_t>("cores"));
