// What kernels have of the C and C++ libraries without an #include, and what the simulator's own headers need.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utility>
