"""The API of OneFlow 0.2 to 0.4: layers, optimizers, images, data, and settings of jobs.

    functions/     functions of blobs and tensors
    nn/ layers.py conv_layers.py initializers.py variables.py    functions and layers of networks
    optim/         optimizers, learning-rate schedules, loss scaling
    job/           jobs: settings, sessions, placements, views, checkpoints
    data/ image/ record/     files of records and images
    custom/        ops that a program defines
    math.py, linalg.py ...   the modules flow.math, flow.linalg and others (see flowedu/aliases.py)
    names.py       names that have an older and a newer meaning
    public.py      the names of `flow`
"""
