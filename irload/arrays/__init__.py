"""Arrays in files: reads and writes .npy and .npz files, and assigns their arrays to the inputs of a model."""
