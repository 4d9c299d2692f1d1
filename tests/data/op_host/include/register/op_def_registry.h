// ops::OpDef and what it is made of. OP_ADD keeps an instance, which the tests look at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exe_graph/runtime/contexts.h"

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };

class OpParamDef {
public:
    explicit OpParamDef(const char *name) : testName(name) {}
    OpParamDef &ParamType(Option type)
    {
        testType = type;
        return *this;
    }
    OpParamDef &DataType(std::vector<ge::DataType> types)
    {
        testTypes = types;
        return *this;
    }
    OpParamDef &Format(std::vector<ge::Format> formats)
    {
        testFormats = formats;
        return *this;
    }
    OpParamDef &UnknownShapeFormat(std::vector<ge::Format> formats)
    {
        testUnknownShapeFormats = formats;
        return *this;
    }
    OpParamDef &AutoContiguous()
    {
        testAutoContiguous = true;
        return *this;
    }

    std::string testName;
    Option testType = IGNORE;
    std::vector<ge::DataType> testTypes;
    std::vector<ge::Format> testFormats, testUnknownShapeFormats;
    bool testAutoContiguous = false;
};

using TilingKernelFunc = ge::graphStatus (*)(gert::TilingContext *);
using InferShapeKernelFunc = ge::graphStatus (*)(gert::InferShapeContext *);
using InferDataTypeKernelFunc = ge::graphStatus (*)(gert::InferDataTypeContext *);

class OpAICoreDef {
public:
    OpAICoreDef &SetTiling(TilingKernelFunc func)
    {
        testTiling = func;
        return *this;
    }
    OpAICoreDef &AddConfig(const char *soc)
    {
        testSocs.push_back(soc);
        return *this;
    }

    TilingKernelFunc testTiling = nullptr;
    std::vector<std::string> testSocs;
};

class OpDef {
public:
    explicit OpDef(const char *type) : testOpType(type) {}
    // References stay valid in the definition: the real ones are, too, until the next call of Input or Output.
    OpParamDef &Input(const char *name) { return Add(testInputs, name); }
    OpParamDef &Output(const char *name) { return Add(testOutputs, name); }
    OpDef &SetInferShape(InferShapeKernelFunc func)
    {
        testInferShape = func;
        return *this;
    }
    OpDef &SetInferDataType(InferDataTypeKernelFunc func)
    {
        testInferDataType = func;
        return *this;
    }
    OpAICoreDef &AICore(void) { return testAICore; }

    std::string testOpType;
    std::vector<OpParamDef> testInputs, testOutputs;
    InferShapeKernelFunc testInferShape = nullptr;
    InferDataTypeKernelFunc testInferDataType = nullptr;
    OpAICoreDef testAICore;

private:
    static OpParamDef &Add(std::vector<OpParamDef> &params, const char *name)
    {
        params.emplace_back(name);
        return params.back();
    }
};

inline std::map<std::string, OpDef> &testRegistry()
{
    static std::map<std::string, OpDef> registry;
    return registry;
}

}  // namespace ops

#define OP_ADD(opType, ...) \
    static const bool g_##opType##_added = ops::testRegistry().emplace(#opType, opType(#opType)).second
