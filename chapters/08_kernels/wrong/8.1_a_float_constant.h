// kernels.snake_slope
#define SNAKE(X)                                                             \
    X(snake, a + FE_F(sinf, sin, a) * FE_F(sinf, sin, a))                    \
    X(snake_slope, 1.0000001f + FE_F(sinf, sin, 2 * a))
