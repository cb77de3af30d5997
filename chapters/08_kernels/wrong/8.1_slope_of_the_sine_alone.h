// kernels.snake_slope
#define SNAKE(X)                                                             \
    X(snake, a + FE_F(sinf, sin, a) * FE_F(sinf, sin, a))                    \
    X(snake_slope, 2 * FE_F(sinf, sin, a))
