"""Code that only a host runs, however it is spelled, and code that looks like it and is not."""

import re

import pytest
from test_twin import PROLOGUE, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin
from jascend.backends.ascend.twin import device_code

REFUSED = [
    ("long double x;", "double"), ("typedef double real;", "double"), ("auto y = static_cast<double>(x) * 2;", "double"),
    ("float y = (double)x;", "double"), ("using Real = double; Real x = 1;", "'Real' is double"),
    ("auto x = 1.0;", "'auto x = 1.0' is a double"), ("auto x = 1e-3;", "double"), ("const auto x = .5;", "double"),
    ("__float128 x;", "use float"), ("::std::vector<int> v;", "std::vector"), ("std :: vector<int> v;", "std::vector"),
    ("using std::vector;", "std::vector"), ("namespace s = std; s::map<int, int> m;", "std::map"),
    ("using namespace std; vector<int> v;", "std::vector"), ("using namespace std; cout << 1;", "std::cout"),
    ("using namespace std; f(string(s));", "std::string"), ("auto f = [](std::string s) {};", "std::string"),
    ("std::function<void()> f;", "std::function"), ("auto p = std::make_unique<int>(3);", "std::make_unique"),
    ("::new int;", "new"), ("int* p = new (buffer) int;", "new"), ("delete[] p;", "delete"), ("auto f = malloc;", "malloc"),
    ("(malloc)(4);", "malloc"), ("return calloc(1, 4);", "calloc"), ("g(strdup(s));", "strdup"),
    ("void f() try {} catch (int) {}", "try"), ("struct D : virtual B {};", "virtual"), ("thread_local int x;", "thread-local"),
    ("puts(s);", "files"), ("dynamic_cast<D*>(b);", "dynamic_cast"),
    ('auto s = R"(a)"; double x;', "double"), ('f("a\\"", 1); double x;', "double"), ("char q = '\"'; double x;", "double"),
]  # fmt: skip
ALLOWED = [
    "uint32_t cout = 3; cout = cout << 1;", "auto x = 1.0f;", "float vector = 1;", "void free(int n);", "buffer.free(x);",
    "pool->puts(x);", "int string = 3;", "Queue::malloc(4);", "auto x = 0x1e3;", "auto n = 1'000;", "int doubles = 0;",
    "using namespace std; float map = 0;", "using namespace AscendC; vector<int> v;", "template <typename T = double> struct S;",
    "if constexpr (std::is_same_v<T, double>) {}", "operator delete(p);", 'auto s = "new double // throw";', "auto s = u8R\"x(delete)x\";",
    "int alloca = 1; alloca = alloca + 1;", "struct string { int n; };", "std::min(a, b);", "bool noexcept_new_ = false;",
]  # fmt: skip
OVER_LINES = [
    ('auto s = R"(\nstd::vector<double> v;\n)";\nint x;', []), ('auto s = R"x(\n)" double\n)x"; double y;\ndouble z;', [1, 4]),
    ("std::\nvector<int> v;", [2]), ("using namespace std;\n\nvector<int> v;", [3]), ('auto s = "R\\"(";\ndouble x;', [2]),
]  # fmt: skip


def found(text: str) -> list[str]:
    return device_code.problems(f'# 1 "k.cpp"\n{text}\n', lambda path: path == "k.cpp")


@pytest.mark.parametrize("text, says", REFUSED)
def test_host_only_code_is_refused(text, says):
    problems = found(text)
    assert any(re.match(f"k.cpp:1: error: .*{says}", problem) for problem in problems), problems


@pytest.mark.parametrize("text", ALLOWED)
def test_what_looks_like_it_is_not(text):
    assert found(text) == []


@pytest.mark.parametrize("text, lines", OVER_LINES)
def test_over_lines(text, lines):
    assert [int(problem.split(":")[1]) for problem in found(text)] == lines


def test_spellings_of_macros_and_headers(tmp_path):
    """As the compiler's preprocessor leaves them."""
    (tmp_path / "names.h").write_text("#pragma once\n#define WIDE dou##ble\n#define PASTE(a, b) a##b\n#define MAKE PASTE(n, ew)\n"
                                      "#define NO_USE double\n#define LIST std::vector<int>\n")  # fmt: skip
    (tmp_path / "k.cpp").write_text(PROLOGUE + '#include "names.h"\n' + entry("k", 0, """  // double, new, throw
  /* std::vector<int> v;
     delete p; */
  PASTE(dou, ble) x = 1;
  int* p = MAKE int;
  const char* text = "NO_USE";
  dou\\
ble y = 2;
  LIST v;"""))
    with pytest.raises(twin.CompileError) as error:
        twin.build(tmp_path / "k.cpp")
    lines = [line.split(": error: ")[0].rsplit(":", 1)[1] for line in str(error.value).splitlines()[1:]]
    text = (tmp_path / "k.cpp").read_text().splitlines()
    told = [text[int(n) - 1].strip() for n in lines]
    assert told[0].startswith("PASTE") and told[1].startswith("int* p") and "LIST v;" in told[-1] and len(told) == 4, told
