// kernels.snake_values
#define SNAKE(X)                                                             \
    X(snake, a + sinf(a) * sinf(a))                    \
    X(snake_slope, 1 + FE_F(sinf, sin, 2 * a))
