// assert() stops the launch: cudasim.h.
