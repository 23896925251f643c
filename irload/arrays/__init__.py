"""Arrays in files: reading and writing .npy and .npz, and assigning them to the inputs of a model."""
