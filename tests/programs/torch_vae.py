import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.utils import make_grid, save_image

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def shapes(n):
    """White rectangles on black."""
    images = torch.zeros(n, 1, 16, 16)
    for i in range(n):
        top, left = torch.randint(0, 8, (2,)).tolist()
        h, w = torch.randint(3, 8, (2,)).tolist()
        images[i, 0, top:top + h, left:left + w] = 1.0
    return images


class VAE(nn.Module):
    def __init__(self, hidden=64, latent=8):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(256, hidden), nn.ReLU())
        self.fc_mu = nn.Linear(hidden, latent)
        self.fc_logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 256),
                                     nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return self.decoder(z).view(-1, 1, 16, 16)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


loader = DataLoader(TensorDataset(shapes(256)), batch_size=32, shuffle=True)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    train_loss = 0
    for (data,) in loader:
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(loader.dataset)))

model.eval()
with torch.no_grad():
    sample = model.decode(torch.randn(16, model.latent, device=device)).cpu()
    save_image(sample, "sample.png", nrow=4)
    comparison = torch.cat([data[:8], model(data[:8])[0]])
    save_image(make_grid(comparison.cpu(), nrow=8, normalize=True, padding=1), "reconstruction.png")
