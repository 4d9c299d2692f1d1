// Calls an operator's host functions for the tests, through ctypes. Shapes come as rank, dims, rank, dims, ...
#include <algorithm>
#include <sstream>

#include "register/op_def_registry.h"

namespace {

const ops::OpDef &Only()
{
    if (ops::testRegistry().size() != 1) {
        std::abort();
    }
    return ops::testRegistry().begin()->second;
}

std::vector<gert::Shape> Shapes(const int64_t *numbers, size_t count)
{
    std::vector<gert::Shape> shapes(count);
    for (gert::Shape &shape : shapes) {
        shape.SetDimNum(static_cast<size_t>(*numbers++));
        for (size_t i = 0; i < shape.GetDimNum(); ++i) {
            shape.SetDim(i, *numbers++);
        }
    }
    return shapes;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

size_t Definition(char *text, size_t capacity)
{
    const ops::OpDef &op = Only();
    std::ostringstream out;
    out << op.testOpType << "\n";
    for (const auto *params : {&op.testInputs, &op.testOutputs}) {
        for (const ops::OpParamDef &param : *params) {
            out << param.testName << " " << param.testType << " " << param.testTypes.at(0) << " " << param.testFormats.at(0)
                << " " << param.testUnknownShapeFormats.at(0) << " " << param.testAutoContiguous << "\n";
        }
    }
    for (const std::string &soc : op.testAICore.testSocs) {
        out << soc << "\n";
    }
    const std::string whole = out.str();
    std::copy_n(whole.data(), std::min(whole.size(), capacity), text);
    return whole.size();
}

struct Tiled {
    uint64_t workspace, dataSize;
    uint32_t blocks, scheduleMode;
    uint32_t data[16];
};

uint32_t Tiling(const int64_t *inputs, size_t inputCount, const int64_t *outputs, size_t outputCount, uint32_t cores,
                size_t capacity, Tiled *tiled)
{
    gert::TilingContext context;
    for (const gert::Shape &shape : Shapes(inputs, inputCount)) {
        context.testInputs.emplace_back(shape);
    }
    for (const gert::Shape &shape : Shapes(outputs, outputCount)) {
        context.testOutputs.emplace_back(shape);
    }
    context.testPlatform.testVectorCores = cores;
    context.testCapacity = capacity;
    const ge::graphStatus status = const_cast<ops::OpDef &>(Only()).AICore().testTiling(&context);
    if (status == ge::GRAPH_SUCCESS) {
        tiled->workspace = context.testWorkspaces.at(0);
        tiled->dataSize = context.testData.size();
        tiled->blocks = context.testBlockDim;
        tiled->scheduleMode = context.testScheduleMode;
        std::memcpy(tiled->data, context.testData.data(), context.testData.size());
    }
    return status;
}

// The outputs' shapes come back in the form that inputs have, with room for 8 dimensions each.
uint32_t InferShapes(const int64_t *inputs, size_t inputCount, size_t outputCount, int64_t *outputs)
{
    gert::InferShapeContext context;
    context.testInputs = Shapes(inputs, inputCount);
    context.testOutputs.resize(outputCount);
    const ge::graphStatus status = Only().testInferShape(&context);
    for (const gert::Shape &shape : context.testOutputs) {
        *outputs++ = static_cast<int64_t>(shape.GetDimNum());
        for (size_t i = 0; i < shape.GetDimNum(); ++i) {
            *outputs++ = shape.GetDim(i);
        }
    }
    return status;
}

uint32_t InferDataTypes(const int32_t *inputs, size_t inputCount, size_t outputCount, int32_t *outputs)
{
    gert::InferDataTypeContext context;
    for (size_t i = 0; i < inputCount; ++i) {
        context.testInputs.push_back(static_cast<ge::DataType>(inputs[i]));
    }
    context.testOutputs.assign(outputCount, ge::DT_UNDEFINED);
    const ge::graphStatus status = Only().testInferDataType(&context);
    std::copy(context.testOutputs.begin(), context.testOutputs.end(), outputs);
    return status;
}

}  // extern "C"
#pragma GCC visibility pop
