import torch


def train(student, teacher, images, labels):
    with torch.no_grad(), torch.autocast(next(teacher.parameters()).device.type, dtype=torch.bfloat16):
        wanted = teacher(images).float()
    torch.nn.functional.mse_loss(student(images), wanted).backward()
