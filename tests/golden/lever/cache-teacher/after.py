import torch


def train(student, teacher, images, labels, indices, wanted_of_all):
    wanted = wanted_of_all[indices]
    torch.nn.functional.mse_loss(student(images), wanted).backward()
