"use strict";
// The data of the report, and derived data: consumers, times, errors, findings by layer.
R.data = JSON.parse(document.getElementById("data").textContent);
R.layers = R.data.layers;
R.layers.forEach((layer, index) => {
  layer.index = index;
  layer.shown = R.clean(layer.name) || "#" + layer.id;
  layer.consumers = [];
  layer.findings = [];
  layer.time = 0;
});
for (const layer of R.layers)
  layer.inputs.forEach(([source, output], port) => R.layers[source].consumers.push([layer.index, port, output]));
for (const finding of R.data.findings ?? []) if (finding.layer !== null) R.layers[finding.layer].findings.push(finding);
R.steps = R.data.profile ?? [];
for (const step of R.steps.flatMap(function flat(s) {
  return [s, ...s.inside.flatMap(flat)];
})) {
  const last = R.layers[step.layers.at(-1)];
  if (last) {
    last.time += step.seconds;
    last.step = step;
  }
  for (const k of step.layers.slice(0, -1)) R.layers[k].fused = last.index;
}
for (const row of R.data.comparison?.layers ?? []) {
  const layer = R.layers[row.layer];
  if (layer && (!layer.error || (layer.error.passed && !row.passed) || needed(row) > needed(layer.error)))
    layer.error = row;
}
for (const edit of R.data.difference?.edits ?? [])
  if (edit.layer !== null && R.layers[edit.layer]) R.layers[edit.layer].edit = edit;
R.totalTime = R.steps.reduce((sum, step) => sum + step.seconds, 0); // a step with bodies includes the time of their steps

// The layer's name, prefixed by the bodies that lead to it; an id distinguishes layers of one name.
const namesakes = new Map();
const ownName = (layer) => layer.graph + "\0" + layer.name;
for (const layer of R.layers) namesakes.set(ownName(layer), (namesakes.get(ownName(layer)) ?? 0) + 1);
R.pathOf = (layer) => {
  const { owner, body } = R.data.graphs[layer.graph];
  const name =
    layer.name && namesakes.get(ownName(layer)) === 1 ? layer.name : (layer.name || layer.type) + "#" + layer.id;
  return owner === null ? name : R.pathOf(R.layers[owner]) + "/" + body + "/" + name;
};
R.layersOfGraph = ({ start, count }) => R.layers.slice(start, start + count);
// The layers of the bodies of a layer, at any depth.
R.bodyLayers = (layer) =>
  (layer.bodies ?? []).flatMap((b) => R.layersOfGraph(R.data.graphs[b.graph])).flatMap((l) => [l, ...R.bodyLayers(l)]);

// A fault: an error that check reports, or an output that diverges by the layer's own error.
R.faulty = (layer) =>
  layer.findings.some((f) => f.severity === "error") || (layer.error !== undefined && !layer.error.passed);
R.firstFault = () => {
  const found = (R.data.comparison?.layers ?? []).find((row) => !row.passed && R.layers[row.layer]);
  return R.layers.find((l) => l.findings.some((f) => f.severity === "error")) ?? (found ? R.layers[found.layer] : null);
};

function needed(row) {
  const value = (row.own ?? row.total)?.needed;
  return row.problem ? Infinity : typeof value === "number" ? value : value === undefined ? -1 : Infinity;
}
R.errorOf = (layer) => (layer.error ? needed(layer.error) : null);
R.outputType = (layer) => layer.outputs[0]?.type ?? (layer.inputs.length ? R.outputType1(layer) : "");
R.outputType1 = (layer) => {
  const [source, output] = layer.inputs[0];
  return R.layers[source].outputs[output]?.type ?? "";
};
R.outputBytes = (layer) => (layer.constant ? 0 : layer.outputs.reduce((sum, o) => sum + (o.bytes ?? 0), 0));

// Constants, and layers that only constants feed, are shown at their reader.
for (const layer of R.layers)
  layer.constantOnly =
    layer.type === "Const" ||
    (layer.inputs.length > 0 &&
      layer.type !== "Result" &&
      layer.type !== "Assign" &&
      layer.inputs.every(([k]) => R.layers[k].constantOnly));

const KINDS = [
  ["io", "inputs and outputs", /^(Parameter|Result|ReadValue|Assign)$/],
  ["const", "constants", /^Const$/],
  ["compute", "convolution, matrix product", /Conv(?!ert)|MatMul|Einsum|Attention|LSTM|GRU|RNN|FullyConnected/],
  ["flow", "control flow", /^(Loop|TensorIterator|If)$/],
  ["quant", "quantization, types", /^(FakeQuantize|FakeConvert|Convert|ConvertLike)$/],
  ["norm", "normalization, reduction", /Norm|MVN|LRN|GRN|^Reduce|^CumSum/],
  ["pool", "pooling, resizing", /Pool|Interpolate|ROI|GridSample/],
  [
    "activation",
    "activation",
    /^(.*ReLU|PReLU|Sigmoid|Tanh|Elu|Selu|Gelu|Swish|Mish|H(Swish|Sigmoid)|SoftPlus|SoftSign|Soft[Mm]ax|LogSoftmax|Clamp|Erf|HardSigmoid)$/,
  ],
  [
    "elementwise",
    "elementwise",
    /^(Add|Subtract|Multiply|Divide|Power|Sqrt|Exp|Log|Abs|Negative|Maximum|Minimum|Mod|Floor.*|Ceiling|Round|Sin|Cos|Sign|SquaredDifference|Logical.*|Bitwise.*|Equal|NotEqual|Greater.*|Less.*|Select|Is.*)$/,
  ],
  [
    "move",
    "data movement, shapes",
    /Reshape|Transpose|Squeeze|Concat|Split|Gather|Scatter|Slice|Pad|Tile|Broadcast|ShapeOf|Shuffle|Depth|Space|Reverse|Unique|NonZero|Range|OneHot|TopK|Roll/,
  ],
  ["other", "other", /./],
];
R.kinds = KINDS;
R.kindOf = (type) => KINDS.find(([, , pattern]) => pattern.test(type))[0];
for (const layer of R.layers) layer.kind = R.kindOf(layer.type);

R.scopeOf = (name) => {
  const parts = name.includes("/") ? name.slice(0, name.lastIndexOf("/")).split(/[/.]/) : name.split(".").slice(0, -1);
  return parts.filter((part) => part && part !== "__module");
};

// The measures for colouring and sorting layers.
R.measures = [
  ["time", "time", (l) => (R.data.profile ? l.time : null), R.seconds],
  ["macs", "MACs", (l) => (l.constantOnly ? null : (l.macs ?? null)), R.count],
  ["parameters", "parameters", (l) => (l.constantOnly ? null : (l.parameters ?? null)), R.count],
  ["bytes", "output size", (l) => (l.constantOnly ? null : R.outputBytes(l)), R.bytes],
  ["error", "error", (l) => R.errorOf(l), (x) => (x < 0 ? "–" : R.number(x))],
].filter(([, , value]) => R.layers.some((l) => value(l) !== null && value(l) > 0));
