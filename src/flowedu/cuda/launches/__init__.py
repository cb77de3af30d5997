"""How the kernels of _kernels/cuda are launched, a file for each family. Importing this fills flowedu.cuda.launch.TABLE."""
