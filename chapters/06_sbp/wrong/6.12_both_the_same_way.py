# ranks.few_rows
def plan(rows):
    if rows > 1000:
        return {"x": "S0", "labels": "S0", "0.weight": "B", "0.bias": "B", "2.weight": "B", "2.bias": "B"}
    return {"x": "B", "labels": "B", "0.weight": "S0", "0.bias": "S0", "2.weight": "S0", "2.bias": "S0"}
