#define SNAKE(X)                                \
    X(snake, 0)                                 \
    X(snake_slope, 0)
/* 8.1: your turn */
