import oneflow as flow
import oneflow.nn as nn

from flowvision.models.neural_style_transfer.stylenet import neural_style_transfer


class MyGraph(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, *input):
        return self.model(*input)


if __name__ == "__main__":
    fake_image = flow.ones((1, 3, 64, 64))
    model = neural_style_transfer(pretrained=False, progress=True)
    model.eval()
    graph = MyGraph(model)
    out = graph(fake_image)

    flow.save(graph, "1/model")
    print(tuple(flow.load_graph("1/model")(fake_image).shape))
