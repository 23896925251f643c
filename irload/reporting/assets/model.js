"use strict";
// The data of the report, and what follows from it: consumers, times, errors, findings by layer.
R.data = JSON.parse(document.getElementById("data").textContent);
R.layers = R.data.layers;
R.layers.forEach((layer, index) => {
  layer.index = index;
  layer.shown = R.clean(layer.name) || "#" + layer.id;
  layer.consumers = [];
  layer.findings = [];
  layer.time = 0;
});
for (const layer of R.layers) layer.inputs.forEach(([source, output], port) => R.layers[source].consumers.push([layer.index, port, output]));
for (const finding of R.data.findings ?? []) if (finding.layer !== null) R.layers[finding.layer].findings.push(finding);
for (const step of R.data.profile ?? []) {
  const last = R.layers[step.layers.at(-1)];
  if (last) { last.time += step.seconds; last.step = step; }
  for (const k of step.layers.slice(0, -1)) R.layers[k].fused = last.index;
}
for (const row of R.data.comparison?.layers ?? []) {
  const layer = R.layers[row.layer];
  if (layer && (!layer.error || (layer.error.passed && !row.passed) || needed(row) > needed(layer.error))) layer.error = row;
}
for (const edit of R.data.difference?.edits ?? []) if (edit.layer !== null && R.layers[edit.layer]) R.layers[edit.layer].edit = edit;
R.totalTime = R.layers.reduce((sum, layer) => sum + layer.time, 0);

function needed(row) {
  const value = (row.own ?? row.total)?.needed;
  return row.problem ? Infinity : typeof value === "number" ? value : value === undefined ? -1 : Infinity;
}
R.errorOf = (layer) => (layer.error ? needed(layer.error) : null);
R.outputType = (layer) => layer.outputs[0]?.type ?? (layer.inputs.length ? R.outputType1(layer) : "");
R.outputType1 = (layer) => { const [source, output] = layer.inputs[0]; return R.layers[source].outputs[output]?.type ?? ""; };
R.outputBytes = (layer) => (layer.constant ? 0 : layer.outputs.reduce((sum, o) => sum + (o.bytes ?? 0), 0));

// Constants, and layers that only constants feed, are shown at what takes them.
for (const layer of R.layers)
  layer.constantOnly = layer.type === "Const" ||
    (layer.inputs.length > 0 && layer.type !== "Result" && layer.type !== "Assign" && layer.inputs.every(([k]) => R.layers[k].constantOnly));

const KINDS = [
  ["io", "inputs and outputs", /^(Parameter|Result|ReadValue|Assign)$/],
  ["const", "constants", /^Const$/],
  ["compute", "convolution, matrix product", /Conv(?!ert)|MatMul|Einsum|Attention|LSTM|GRU|RNN|FullyConnected/],
  ["flow", "control flow", /^(Loop|TensorIterator|If)$/],
  ["quant", "quantization, types", /^(FakeQuantize|FakeConvert|Convert|ConvertLike)$/],
  ["norm", "normalization, reduction", /Norm|MVN|LRN|GRN|^Reduce|^CumSum/],
  ["pool", "pooling, resizing", /Pool|Interpolate|ROI|GridSample/],
  ["activation", "activation", /^(.*ReLU|PReLU|Sigmoid|Tanh|Elu|Selu|Gelu|Swish|Mish|H(Swish|Sigmoid)|SoftPlus|SoftSign|Soft[Mm]ax|LogSoftmax|Clamp|Erf|HardSigmoid)$/],
  ["elementwise", "elementwise", /^(Add|Subtract|Multiply|Divide|Power|Sqrt|Exp|Log|Abs|Negative|Maximum|Minimum|Mod|Floor.*|Ceiling|Round|Sin|Cos|Sign|SquaredDifference|Logical.*|Bitwise.*|Equal|NotEqual|Greater.*|Less.*|Select|Is.*)$/],
  ["move", "data movement, shapes", /Reshape|Transpose|Squeeze|Concat|Split|Gather|Scatter|Slice|Pad|Tile|Broadcast|ShapeOf|Shuffle|Depth|Space|Reverse|Unique|NonZero|Range|OneHot|TopK|Roll/],
  ["other", "other", /./],
];
R.kinds = KINDS;
R.kindOf = (type) => KINDS.find(([, , pattern]) => pattern.test(type))[0];
for (const layer of R.layers) layer.kind = R.kindOf(layer.type);

R.scopeOf = (name) => {
  const parts = name.includes("/") ? name.slice(0, name.lastIndexOf("/")).split(/[/.]/) : name.split(".").slice(0, -1);
  return parts.filter((part) => part && part !== "__module");
};

// What numbers a layer can be coloured and sorted by.
R.measures = [
  ["time", "time", (l) => (R.data.profile ? l.time : null), R.seconds],
  ["macs", "MACs", (l) => (l.constantOnly ? null : l.macs ?? null), R.count],
  ["parameters", "parameters", (l) => (l.constantOnly ? null : l.parameters ?? null), R.count],
  ["bytes", "output size", (l) => (l.constantOnly ? null : R.outputBytes(l)), R.bytes],
  ["error", "error", (l) => R.errorOf(l), (x) => (x < 0 ? "–" : R.number(x))],
].filter(([, , value]) => R.layers.some((l) => value(l) !== null && value(l) > 0));
