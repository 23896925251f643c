"""Runs a model: `CompiledModel`, infer requests, variables, inputs, results, and observation of layers."""
