"""The operations of OpenVINO's tokenizer extension: texts to token ids, and back.

A tensor of strings is three arrays: `begins` and `ends`, i32 of the shape of the tensor, are offsets of bytes in
`chars`, u8 with one axis. A ragged tensor has `begins` and `ends` as offsets of elements, one pair per row. A ragged
tensor of strings has five arrays: the offsets of each row's strings, then the strings.
"""
