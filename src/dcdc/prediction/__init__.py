"""The clusters of new images, any number of them: streamed, resumed, sorted into folders.

`answers` gives rows, `session` writes them; the files' names can be checked without torch.
"""
