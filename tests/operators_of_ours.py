"""Stand-ins for the package of a written project, beside those of `data/op_host` for CANN's own libraries."""

from jascend.backends.ascend.codegen.op_host import operator_type

# An operator of ours: it insists on the inputs that the twin had, and gives what the twin gave.
_OPERATOR = """
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include "aclnn_@kernel@.h"
#include "runtime.h"
static std::vector<const aclTensor *> g_@kernel@;
static std::vector<char> Bytes(const std::string &path)
{
    std::vector<char> bytes;
    std::FILE *file = std::fopen(path.c_str(), "rb");
    for (int c; file != nullptr && (c = std::fgetc(file)) != EOF;) {
        bytes.push_back(static_cast<char>(c));
    }
    if (file != nullptr) {
        std::fclose(file);
    }
    return bytes;
}
aclnnStatus aclnn@operator@GetWorkspaceSize(@parameters@, uint64_t *size, aclOpExecutor **executor)
{
    g_@kernel@ = {@tensors@};
    *size = 0;
    *executor = reinterpret_cast<aclOpExecutor *>(&g_@kernel@);
    return 0;
}
aclnnStatus aclnn@operator@(void *, uint64_t, aclOpExecutor *, aclrtStream)
{
    const char *files[] = {@files@};
    for (size_t i = 0; i < g_@kernel@.size(); ++i) {
        const std::vector<char> bytes = Bytes(files[i]);
        if (i >= @inputs@) {
            std::memcpy(g_@kernel@[i]->data, bytes.data(), bytes.size());
            continue;
        }
        for (size_t at = 0; at < bytes.size(); at += 4) {
            float wanted, given;
            std::memcpy(&wanted, &bytes[at], 4);
            std::memcpy(&given, static_cast<char *>(g_@kernel@[i]->data) + at, 4);
            if (std::memcmp(&wanted, &given, 4) != 0 && !(std::fabs(wanted - given) <= 1e-4F * (1 + std::fabs(wanted)))) {
                return @status@;
            }
        }
    }
    return 0;
}
"""


def operators_of_ours(program, build, data, status=561001):
    """Sources of the operators of a program, beside their headers, in `build`. `data` is the project's `test/data`; what
    differs from it gives `status`."""
    sources = []
    for kernel in program.kernels:
        operator, signature = operator_type(kernel.name), kernel.signature
        tensors = [t.name for t in (*signature.inputs, *signature.outputs)]
        parameters = ", ".join(f"const aclTensor *t{i}" for i in range(len(tensors)))
        (build / f"aclnn_{kernel.name}.h").write_text(
            '#pragma once\n#include "aclnn/acl_meta.h"\nextern "C" {\n'
            f"aclnnStatus aclnn{operator}GetWorkspaceSize({parameters}, uint64_t *size, aclOpExecutor **executor);\n"
            f"aclnnStatus aclnn{operator}(void *, uint64_t, aclOpExecutor *, aclrtStream);\n}}\n"
        )
        text = _OPERATOR
        for name, value in {
            "kernel": kernel.name, "operator": operator, "parameters": parameters, "status": status,
            "files": ", ".join(f'"{data}/{kernel.name}/{name}.bin"' for name in tensors),
            "inputs": len(signature.inputs), "tensors": ", ".join(f"t{i}" for i in range(len(tensors))),
        }.items():  # fmt: skip
            text = text.replace(f"@{name}@", str(value))
        sources.append(build / f"{kernel.name}.cpp")
        sources[-1].write_text(text)
    return sources
